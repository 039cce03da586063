"""Whatever was done to a registry, it answers like one made afresh from what is left.

This is what holds the caches to account: plans, rendered parts of the global layer, shared bodies, remembered tools.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from tests.support.world import (
    FAILS,
    MOOD,
    Asked,
    InFile,
    Listen,
    Options,
    Outcome,
    Protect,
    Spec,
    Suppress,
    Text,
    Tools,
    Value,
    When,
    World,
    act,
    made,
    outcome,
    put,
    told_error,
)

from foreword import (
    GLOBAL,
    PERSONA_SECTION,
    TOOL_ORDER_REST,
    AssembleContext,
    ForewordError,
    ParentBinding,
    Placeholder,
    PromptLimits,
    Registration,
    ScopeCycleError,
    ScopeKey,
    SystemPrompt,
    SystemPromptConfig,
    bind_parent,
)

CROWD = 33  # so many sections that a touched list of them is rendered from kept parts
NAMES = ("s0", "s1", "s2", PERSONA_SECTION, "f0", "f1", "f5")
VARIABLES = ("a", "b", "c")
FILES = {"one.md": "of a file\n{{a}}\n\n{{b}}", "two.md": "plain,\nof a file"}


# -- what is drawn -----------------------------------------------------------------------------------------------------

numbers = st.integers(0, 7)
slots = st.integers(0, 2)
variables = st.sampled_from(VARIABLES)
TEMPLATES = [
    "plain",
    "other",
    "",
    "{{a}}",
    "{{a}}",
    "{{b}}",
    "{{b}}!",
    "{{b}}",
    "so {{a}}, {{b}}",
    "{{{{a}}}}",
    "{{b}}{{c}}",
    "𝄞 {{b}} é\n",
]
templates = st.sampled_from(TEMPLATES)
values = st.sampled_from(("A", "B", "A", "", "{{b}}", "much longer than others", None))
asked = st.builds(Asked, slots, st.sampled_from(("plain", "plain", "context", "async")))
conditions = st.one_of(
    st.builds(When, flag=st.integers(0, 1), raises=st.sampled_from((False, False, False, True))),
    st.builds(When, mood=st.integers(0, 1)),
)
fallbacks = st.sampled_from(("fail", "skip", Placeholder("{{not read}}")))
options = st.one_of(st.just(Options()), st.builds(Options, st.none() | conditions, fallbacks))
orders = st.sampled_from((-1, 0, 1, 1, 2, 2.5, 3, 40))
additions = st.sampled_from(
    ((), (), (), (("verbatim", True),), (("requires_tools", ("t0",)),), (("requires_tools", ("T", "t1")),))
)
complete = st.sampled_from(((), (), (), (), (), (("complete", True),)))
texts = st.one_of(templates, templates, asked, st.builds(InFile, st.sampled_from(sorted(FILES))))

sections = st.builds(
    lambda *given: Text("section", *given[:-2], given[-2] or given[-1]),
    st.sampled_from(NAMES), orders, texts, options, complete, additions,
)  # fmt: skip
contexts = st.builds(Text, st.just("context"), st.sampled_from(("c0", "c1", "c2")), orders, texts, options, additions)
registered_values = st.builds(Value, variables, values | asked, options)
known_names = st.sampled_from((None, None, (), ("t0", "t9")))
palettes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
tools = st.builds(Tools, palettes | st.integers(0, 1), known_names, st.builds(Options, st.none() | conditions))
protections = st.builds(
    Protect, st.lists(st.sampled_from(NAMES[:5]), min_size=1, max_size=2).map(tuple),
    st.lists(st.sampled_from(("t0", "t1")), max_size=1).map(tuple),
)  # fmt: skip

kinds = st.sampled_from(("sections", "sections", "contexts", "tools"))
actions = st.one_of(
    st.tuples(st.just("set"), variables, values),
    st.tuples(st.just("delete"), variables),
    st.tuples(st.sampled_from(("look", "reverse")), kinds),
    st.tuples(st.sampled_from(("append", "front")), kinds, st.sampled_from(("s0", "c0", "t0", "x")), templates),
    st.tuples(st.just("drop"), kinds, st.integers(0, CROWD)),
    st.tuples(st.just("edit"), kinds, st.integers(0, CROWD), templates),
    st.tuples(st.just("swap"), kinds, st.integers(0, CROWD), st.integers(0, CROWD)),
)
rare_actions = st.sampled_from((("new",), ("raise",), ("clear", "sections"), ("clear", "contexts")))
turns = st.one_of(
    st.builds(lambda before, after: (*before, ("next",), *after), *[st.lists(actions, max_size=3)] * 2),
    st.lists(actions, max_size=3).map(lambda done: (("next",), *done)),
    st.lists(actions | rare_actions, max_size=3).map(tuple),  # does not call on
)
listeners = st.builds(Listen, turns, st.none() | conditions, st.booleans())

configs = st.fixed_dictionaries(
    {
        "persona": st.sampled_from(("", "You are {{a}}.")),
        "section_ties": st.sampled_from(("registration", "registration", "name")),
        "include_runtime_context": st.sampled_from((True, True, True, False)),
        "tool_order": st.sampled_from((None, None, ["t1", TOOL_ORDER_REST, "t0"])),
        "limits": st.sampled_from((PromptLimits(), PromptLimits(), PromptLimits(rendered=60, value=20))),
    }
)


mostly = st.sampled_from((True, True, False))
moods = st.sampled_from((None, 0, 1))
changes = st.one_of(
    st.tuples(st.just("answer"), slots, st.sampled_from(("zero", "one", "A", "{{a}}", "", None, FAILS))),
    st.tuples(st.just("flip"), st.integers(0, 1)),
    st.tuples(st.just("offer"), st.integers(0, 1), palettes, st.booleans()),
    st.tuples(st.just("mood"), moods),
    st.tuples(st.just("scope"), numbers),
)

Feature = tuple[tuple[int, Spec], ...]  # what is registered, and in which scope: 0 global, 1 outer, 2 inner, 3 other

BASE: Feature = (
    (0, Value("a", "A")),
    (0, Value("b", Asked(0))),
    (1, Value("a", "of outer")),
    (0, Text("section", "said", 1, "{{a}} says")),
    (0, Text("section", "heard", 1, "and {{b}}")),
    (0, Text("section", "asked", 1, Asked(1), Options(on_error=Placeholder("{{a}}")))),
    (0, Text("context", "asked", 1, Asked(2), Options(on_error="skip"))),
    (0, Tools(0)),
    (0, Text("section", "s2", 1, "with {{a}}", more=(("requires_tools", ("t0",)),))),
    (0, Text("context", "c2", 1, "with {{b}}", more=(("requires_tools", ("t1",)),))),
)
QUIET: dict[str, Feature] = {
    "conditions": (
        (0, Text("section", "s1", 3, "{{b}} perhaps", Options(When(flag=1)))),
        (0, Text("context", "c1", 3, "{{a}} perhaps", Options(When(flag=0)))),
        (1, Text("section", "f1", 0, "now", Options(When(mood=0)))),
        (1, Tools(1, options=Options(When(flag=0)))),
    ),
    "a value comes and goes": (
        (0, Value("c", "C", Options(When(mood=0)))),
        (0, Text("section", "s1", 3, "if {{c}}", Options(When(mood=0)))),
    ),
    "answers": (
        (0, Text("section", "s1", 3, Asked(1, "context"))),
        (1, Text("section", "s1", 4, Asked(2, "async"))),
        (2, Text("context", "c1", 3, Asked(0))),
    ),
    "the very same answers": (
        (0, Text("section", "s1", 3, Asked(1))),
        (1, Text("section", "s1", 4, Asked(1))),
        (2, Text("section", "asked", 1, Asked(1), Options(on_error=Placeholder("{{a}}")))),
        (2, Text("context", "asked", 1, Asked(2), Options(on_error="skip"))),
        (3, Value("b", Asked(0))),
    ),
    "fallbacks": (
        (0, Text("section", "s0", 2, Asked(1, "async"), Options(on_error=Placeholder("{{not read}}")))),
        (0, Text("context", "c0", 2, Asked(2), Options(on_error="skip"))),
        (2, Value("b", Asked(1), Options(on_error="skip"))),
    ),
    "hidden faults": (
        (0, Text("section", "f5", 3, "{{ no }}")),
        (0, Text("section", "f0", 3, "{{unknown}}")),
        (1, Text("section", "f5", 2, "mended")),
        (1, Text("section", "f0", 3, "known")),
    ),
    "own values": ((2, Value("b", "B")), (3, Value("b", Asked(1))), (3, Value("a", None, Options(When(flag=0))))),
    "a value elsewhere": (
        (1, Value("c", "C")),
        (0, Text("section", "s0", 5, "{{c}}")),
        (3, Text("section", "s0", 5, "{{b}}")),
    ),
    "two whole prompts": (
        (0, Text("section", "s0", 2, "{{a}} alone", Options(When(mood=0)), (("complete", True),))),
        (1, Text("section", "s0", 2, "{{b}} alone", Options(When(mood=1)), (("complete", True),))),
    ),
    "protections": ((0, Protect(("f0", "s9"), ("t0",))), (1, Protect(("f1",), ()))),
    "a setter": ((0, Listen((("set", "b", "one"), ("next",)), When(flag=0))),),
    "a remover": ((0, Listen((("delete", "a"), ("next",)), When(flag=1))),),
    "another remover": ((0, Listen((("next",), ("delete", "b")), When(mood=1))),),
    "a giver": (
        (0, Listen((("set", "c", "given"), ("next",)), When(flag=0))),
        (0, Text("section", "s1", 0, "to {{c}}", Options(When(flag=0)))),
    ),
}
LOUD: dict[str, Feature] = {
    "an editor": (
        (0, Listen((("edit", "sections", 3, "edited {{a}}"), ("next",), ("swap", "sections", 1, 2)), When(flag=0))),
    ),
    "an onlooker": ((0, Listen((("next",), ("look", "sections"), ("look", "contexts")))),),
    "a hand on contexts": (
        (0, Text("context", "c0", 1, "{{b}}!")),
        (0, Listen((("edit", "contexts", 0, "loud {{a}}"), ("next",)), When(flag=0))),
    ),
    "a hand on tools": ((1, Listen((("next",), ("edit", "tools", 0, "edited")), When(flag=0))),),
}
features = st.builds(
    lambda quiet, loud: [*quiet, *loud],
    st.lists(st.sampled_from(sorted(QUIET)), min_size=1, max_size=4, unique=True),
    st.just([]) | st.lists(st.sampled_from(sorted(LOUD)), min_size=1, max_size=3, unique=True),
)


# -- what is kept in mind ----------------------------------------------------------------------------------------------


@dataclass
class View:
    """A view, and what must be known to make one like it."""

    prompt: SystemPrompt
    scope: int  # 0 is the global one
    owner: str
    made_from: View | None
    open: bool = True

    def closes_with(self, other: View) -> bool:
        return self is other or (self.made_from is not None and self.made_from.closes_with(other))


@dataclass
class Held:
    """Something registered that is still there."""

    view: View
    spec: Spec
    registration: Registration


@dataclass
class Kept:
    """A rendering that is still in use, what is to be read of it, and what was asked for."""

    outcome: Outcome
    expected: dict[str, Any]


@dataclass
class Refusal:
    """What was said when something was refused."""

    error: tuple[str, str] | None = None


class Interleavings(RuleBasedStateMachine):
    """A registry that is played with, and all that is needed to make it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        for name, text in FILES.items():
            (Path(self.folder.name) / name).write_text(text, encoding="utf-8")
        self.world = World(Path(self.folder.name))
        self.loop = asyncio.new_event_loop()
        self.keys: list[ScopeKey] = [GLOBAL]
        self.bindings: list[ParentBinding | None] = [None]
        self.held: list[Held] = []
        self.kept: list[Kept] = []
        self.last: tuple[Any, ...] | None = None
        self.answers: dict[tuple[Any, ...], dict[str, Any]] = {}  # of registries made afresh, until something changes
        self.sound = False  # there is something to look at, and nothing was wrong so far

    @initialize(config=configs, crowd=st.sampled_from((0, 0, CROWD)), features=features)
    def start(self, config: dict[str, Any], crowd: int, features: list[str]) -> None:
        self.config = SystemPromptConfig(**config)
        self.prompt = prompt_of(self.config)
        self.root = View(self.prompt, 0, "main", None)
        self.views = [self.root]
        for name, parent in (("outer", 0), ("inner", 1), ("other", 0)):
            self.add_scope(name, parent)
        if self.config.tool_order is not None:
            self.register(0, Tools((0,), known=("t0", "t1")))
        for view, spec in (each for feature in features for each in {**QUIET, **LOUD}[feature]):
            self.register(view, spec)
        for number in range(crowd):
            text = ("part {{a}}", "part", "{{b}} and {{a}}", "part {{b}}")[number % 4]
            self.register(0, Text("section", f"f{number}", number // 2, text))
        for view, spec in BASE:
            self.register(view, spec)
        self.sound = True

    # -- playing -------------------------------------------------------------------------------------------------------

    @rule(at=numbers, spec=sections | contexts, poisoned=st.sampled_from((False, False, False, False, True)))
    def text(self, at: int, spec: Text, poisoned: bool) -> None:
        self.register(at, spec, poisoned)

    @rule(at=numbers, spec=registered_values | tools | protections | listeners | st.just(Suppress()))
    def other(self, at: int, spec: Spec) -> None:
        self.register(at, spec)

    @precondition(lambda self: self.held)
    @rule(at=st.integers(0, 60), poisoned=st.sampled_from((False, False, False, True)))
    def undo(self, at: int, poisoned: bool) -> None:
        held = self.held.pop(-1 - at % len(self.held))
        self.answers.clear()
        with self.change_listener(poisoned and not isinstance(held.spec, Listen)):
            held.registration.close()

    @precondition(lambda self: any(hasattr(held.registration, "replace") for held in self.held))
    @rule(at=st.integers(0, 60), text=texts | values, poisoned=st.sampled_from((False, False, False, False, True)))
    def replace(self, at: int, text: Any, poisoned: bool) -> None:
        able = [held for held in self.held if hasattr(held.registration, "replace")]
        held = able[-1 - at % len(able)]
        fits = replace(held.spec, value=text)
        with self.change_listener(poisoned) as refused:
            put(held.registration.replace, made(self.world, text))
        if refused.error is not None:
            self.expect_refusal(held.view, fits, refused.error, without=held)
        elif not poisoned:
            held.spec = fits
            self.answers.clear()

    @rule(scope=numbers, parent=numbers)
    def rebind(self, scope: int, parent: int) -> None:
        key, above = self.keys[1:][scope % (len(self.keys) - 1)], self.keys[parent % len(self.keys)]
        binding = next(each for each in self.bindings if each is not None and each.key is key)
        if key in above.chain():
            with pytest.raises(ScopeCycleError):
                binding.rebind(above)
        else:
            binding.rebind(above)
            self.answers.clear()

    @rule(at=numbers, what=st.sampled_from(("scope", "owner", "view")))
    def open(self, at: int, what: str) -> None:
        number = at % len(self.keys)
        if what == "scope" and len(self.keys) < 6:
            self.add_scope(f"scope {len(self.keys)}", number)
        elif what == "owner":
            view = self.open_view(at)
            name = f"owner {len(self.views)}"
            self.views.append(View(view.prompt.owner(name), view.scope, name, view))
        elif number:
            self.views.append(View(self.prompt.scope(self.keys[number]), number, self.keys[number].name, None))

    @precondition(lambda self: sum(view.open for view in self.views) > 2)
    @rule(at=numbers, poisoned=st.sampled_from((False, False, True)))
    def close(self, at: int, poisoned: bool) -> None:
        gone = self.open_view(at)
        if gone is self.root:
            return
        lost = [held for held in self.held if held.view.closes_with(gone)]
        with self.change_listener(poisoned and any(not isinstance(held.spec, Listen) for held in lost)):
            gone.prompt.close()
        for view in self.views:
            view.open = view.open and not view.closes_with(gone)
        self.held = [held for held in self.held if held not in lost]
        self.answers.clear()

    # -- looking -------------------------------------------------------------------------------------------------------

    @rule(scope=numbers, mood=moods, late=st.booleans())
    def render_all(self, scope: int, mood: int | None, late: bool) -> None:
        for number in range(len(self.keys)):
            self.look((scope + number) % len(self.keys), mood, (), True, late)

    @rule(scope=numbers, mood=moods, changes=st.lists(changes, min_size=1, max_size=3), keep=mostly)
    def steps(self, scope: int, mood: int | None, changes: list[tuple[Any, ...]], keep: bool) -> None:
        self.look(scope % len(self.keys), mood, (), keep, False)
        for word, *given in changes:
            self.change_world((word, *given))
            mood = given[0] if word == "mood" else mood
            scope = given[0] if word == "scope" else scope
            self.look(scope % len(self.keys), mood, (), keep, False)

    @rule(scope=numbers, mood=moods)
    def flicker(self, scope: int, mood: int | None) -> None:
        """Change one thing of the world at a time, there and back, with what was rendered before still in use."""
        number = scope % len(self.keys)
        self.look(number, mood, (), True, False)
        self.look(number, 1 if mood != 1 else 0, (), True, False)
        for word, at in [*(("answer", slot) for slot in (0, 1, 2)), *itertools.product(("flip", "offer"), (0, 1))]:
            before = self.world.answers[at], self.world.tools[at % 2], self.world.fresh_tools
            turns: dict[str, list[tuple[Any, ...]]] = {
                "answer": [
                    ("one" if before[0] != "one" else "zero",),
                    *([(FAILS,), ("{{a}}",)] if at else []),
                    before[:1],
                ],
                "flip": [(), ()],
                "offer": [((1,) if 0 in before[1] else (0, 2), before[2]), before[1:]],
            }
            for given in turns[word]:
                self.change_world((word, at, *given))
                self.look(number, mood, (), True, False)

    @rule(scope=numbers, by_hand=st.lists(actions, min_size=1, max_size=3), keep=st.booleans(), late=st.booleans())
    def edit_by_hand(self, scope: int, by_hand: list[Any], keep: bool, late: bool) -> None:
        self.look(scope % len(self.keys), None, tuple(by_hand), keep, late)

    @precondition(lambda self: self.last is not None)
    @rule(late=st.booleans())
    def render_again(self, late: bool) -> None:
        assert self.last is not None
        scope, mood, by_hand, keep, _ = self.last
        self.look(scope, mood, by_hand, keep, late)

    @precondition(lambda self: self.kept)
    @rule(at=numbers)
    def drop(self, at: int) -> None:
        kept = self.kept.pop(-1 - at % len(self.kept))
        self.compare(kept.outcome.read(), kept.expected)

    def teardown(self) -> None:
        try:
            if self.sound:
                self.render_all(0, 0, False)
                self.flicker(len(self.held), None)
                for kept in self.kept:
                    self.compare(kept.outcome.read(), kept.expected)
        finally:  # a law that is broken must be told alone, without what it would leave open
            self.loop.close()
            self.folder.cleanup()

    # -- how -----------------------------------------------------------------------------------------------------------

    def look(self, scope: int, mood: int | None, by_hand: tuple[Any, ...], keep: bool, late: bool) -> None:
        """Assemble and render here and in a registry made afresh; read at once, or only when the rendering goes."""
        self.last = (scope, mood, by_hand, keep, late)
        told: dict[Any, object] = {} if mood is None else {MOOD: mood}
        expected = self.expected(scope, told, by_hand)
        seen = self.outcome(self.prompt, AssembleContext(told, scope=self.keys[scope]), by_hand)
        if not late:
            self.compare(seen.read(), expected)
        self.compare(seen.told, {name: expected.get(name) for name in seen.told})
        spoil(seen)
        if keep:
            self.kept.append(Kept(seen, expected))
            if len(self.kept) > 10:
                self.drop(9)
        else:
            self.compare(seen.read(), expected)

    def outcome(self, prompt: SystemPrompt, context: AssembleContext, by_hand: tuple[Any, ...]) -> Outcome:
        return outcome(lambda: self.loop.run_until_complete(prompt.assemble(context)), by_hand)

    def expected(self, scope: int, told: dict[Any, object], by_hand: tuple[Any, ...]) -> dict[str, Any]:
        """What a registry made afresh gives; one for each state of ours, of the world and of the question."""
        world = self.world
        state = (scope, *told.values(), by_hand, *world.answers, *world.flags, *world.tools, world.fresh_tools)
        if state not in self.answers:
            fresh, keys, _ = self.afresh()
            made_afresh = self.outcome(fresh, AssembleContext(told, scope=keys[scope]), by_hand)
            made_afresh.check_one_by_one()
            self.answers[state] = made_afresh.read()
        return self.answers[state]

    def compare(self, seen: dict[str, Any], expected: dict[str, Any]) -> None:
        """Say what differs, and only that."""
        differing = {name for name in {*seen, *expected} if seen.get(name) != expected.get(name)}
        self.sound = not differing
        assert {name: seen.get(name) for name in differing} == {name: expected.get(name) for name in differing}

    def change_world(self, change: tuple[Any, ...]) -> None:
        word, *given = change
        if word == "answer":
            self.world.answers[given[0]] = given[1]
        elif word == "flip":
            self.world.flags[given[0]] = not self.world.flags[given[0]]
        elif word == "offer":
            self.world.tools[given[0]], self.world.fresh_tools = given[1:]

    def register(self, at: int, spec: Spec, poisoned: bool = False) -> None:
        view = self.open_view(at)
        if self.config.tool_order is not None and isinstance(spec, Tools) and isinstance(spec.value, int):
            # what a provider knew outlives its silence, so a registry made afresh cannot tell the same
            spec = replace(spec, options=Options())
        with self.change_listener(poisoned) as refused:
            registration = spec.register(view.prompt, self.world)
        if refused.error is not None:
            self.expect_refusal(view, spec, refused.error)
        elif not poisoned:
            self.held.append(Held(view, spec, registration))
            self.answers.clear()

    def add_scope(self, name: str, parent: int) -> None:
        prompt = self.prompt.scope(name, parent=None if parent == 0 else self.keys[parent])
        self.keys.append(prompt.key)
        self.bindings.append(prompt.binding)
        self.views.append(View(prompt, len(self.keys) - 1, name, None))

    def open_view(self, at: int) -> View:
        able = [view for view in self.views if view.open]
        return able[at % len(able)]

    @contextmanager
    def change_listener(self, poisoned: bool) -> Iterator[Refusal]:
        """Perhaps with a change listener that raises whenever something is made or undone; tells of a refusal."""

        def complain() -> None:
            raise ConnectionError("not now")

        refusal = Refusal()
        with self.prompt.on_change(complain) if poisoned else nullcontext():
            try:
                yield refusal
            except ForewordError as error:
                refusal.error = told_error(error)
            except ConnectionError:
                assert poisoned
            else:
                assert not poisoned

    def afresh(self, *, without: Held | None = None) -> tuple[SystemPrompt, list[ScopeKey], dict[int, SystemPrompt]]:
        """A registry that never held anything else, its scopes' keys, and its views by the identity of ours."""
        prompt = prompt_of(self.config)
        keys = [GLOBAL, *(ScopeKey(key.name) for key in self.keys[1:])]
        for key, ours in zip(keys[1:], self.keys[1:], strict=True):
            bind_parent(key, None if ours.parent is None else keys[self.keys.index(ours.parent)])
        views: dict[int, SystemPrompt] = {}
        for held in self.held:
            if held is not without:
                held.spec.register(self.like(held.view, prompt, keys, views), self.world)
        return prompt, keys, views

    @staticmethod
    def like(view: View, prompt: SystemPrompt, keys: list[ScopeKey], views: dict[int, SystemPrompt]) -> SystemPrompt:
        if id(view) not in views:
            scoped = prompt.scope(keys[view.scope]) if view.scope else prompt
            views[id(view)] = scoped.owner(view.owner)
        return views[id(view)]

    def expect_refusal(self, view: View, spec: Spec, refused: tuple[str, str], *, without: Held | None = None) -> None:
        """A registry made afresh refuses this, too, in the same words."""
        prompt, keys, views = self.afresh(without=without)
        with pytest.raises(ForewordError) as caught:
            spec.register(self.like(view, prompt, keys, views), self.world)
        assert told_error(caught.value) == refused


def prompt_of(config: SystemPromptConfig) -> SystemPrompt:
    """The one line that makes a prompt, so that what it registers itself always comes from the same place."""
    return SystemPrompt(config)


def spoil(seen: Outcome) -> None:
    """Change an assembly that was rendered already: no rendering may notice."""
    if seen.assembly is not None:
        for action in (("clear", "sections"), ("clear", "contexts"), ("clear", "tools"), ("set", "a", "spoilt")):
            act(seen.assembly, action)
        seen.assembly.variables.clear()


@pytest.mark.slow
def test_any_interleaving_equals_a_registry_made_afresh_from_what_is_left() -> None:
    """Whatever is registered, undone, replaced, moved, closed, assembled and kept, no cache ever shows."""
    run_state_machine_as_test(Interleavings, settings=settings(stateful_step_count=12))
