"""Laws of the registry: whatever is registered, masked, moved and taken back, all doors agree, and nothing is left."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from tests.tools.support import stub

from foreword import (
    DuplicateEntryError,
    ScopeCycleError,
    ScopeKey,
    SystemPrompt,
    ToolMask,
    ToolRegistry,
    UnknownToolError,
)

NAMES = ("bash", "read", "mcp__a__x", "mcp__a__y", "mcp__b__x")
LISTED = st.sampled_from((*NAMES, "mcp__*", "mcp__a__*", "*", "zz*", "r?ad"))
SCOPES = ("one", "two", "three", "four")


class Tools(RuleBasedStateMachine):
    """A registry beside a model of it: tables of names, walked anew for each question, by the rules as they are told."""

    registered = Bundle("registered")

    def __init__(self) -> None:
        super().__init__()
        self.prompt = SystemPrompt()
        self.tools = ToolRegistry(self.prompt)
        self.views: dict[str | None, Any] = {None: self.tools}
        self.prompts: dict[str | None, SystemPrompt] = {None: self.prompt}
        self.bindings: dict[str, Any] = {}
        self.parents: dict[str, str | None] = {}
        self.held: dict[str | None, dict[str, object]] = {None: {}}
        self.masks: dict[str | None, list[tuple[Any, Any]]] = {None: []}
        self.changes = self.expected_changes = 0
        for name in SCOPES:
            view = self.prompts[name] = self.prompt.scope(name)
            self.views[name], self.bindings[name] = self.tools.at(view), view.binding
            self.parents[name], self.held[name], self.masks[name] = None, {}, []
            self.prompt.section(f"guide:{name}", "Guide.", order=1)
        for name in NAMES:
            self.prompt.section(f"tool:{name}", f"Use {name}.", order=100, requires_tools=[name])
        self.prompt.on_change(self.changed)

    def changed(self) -> None:
        self.changes += 1

    # -- the model -----------------------------------------------------------------------------------------------------

    def chain(self, scope: str | None) -> list[str | None]:
        """The scope, its parent, and so on, the global layer last."""
        chain: list[str | None] = []
        while scope is not None:
            chain.append(scope)
            scope = self.parents[scope]
        return [*chain, None]

    def inherited(self, scope: str | None) -> dict[str, object]:
        found: dict[str, object] = {}
        for layer in self.chain(scope)[1:]:
            for name, tool in self.held[layer].items():
                found.setdefault(name, tool)
        return found

    def admits(self, scope: str | None, name: str) -> bool:
        def listed(names: list[str]) -> bool:
            return any(fnmatchcase(name, each) for each in names)

        return all(
            (allow is None or listed(allow)) and not (deny is not None and listed(deny))
            for layer in self.chain(scope)
            for allow, deny in self.masks[layer]
        )

    def visible(self, scope: str | None) -> dict[str, object]:
        inherited = {name: tool for name, tool in self.inherited(scope).items() if self.admits(scope, name)}
        return {**inherited, **self.held[scope]}

    # -- what is done --------------------------------------------------------------------------------------------------

    @rule(target=registered, scope=st.sampled_from((None, *SCOPES)), name=st.sampled_from(NAMES))
    def register(self, scope: str | None, name: str) -> Any:
        tool = stub(name, answer=f"{name} of {scope} {self.expected_changes}")
        try:
            registration = self.views[scope].register(tool)
        except DuplicateEntryError:
            assert name in self.held[scope]
            return multiple()
        assert name not in self.held[scope]
        self.held[scope][name] = tool
        self.expected_changes += 1
        return registration, lambda: self.held[scope].pop(name)

    @rule(
        target=registered,
        scope=st.sampled_from(SCOPES),
        allow=st.none() | st.lists(LISTED, max_size=3),
        deny=st.none() | st.lists(LISTED, max_size=3),
    )
    def restrict(self, scope: str, allow: list[str] | None, deny: list[str] | None) -> Any:
        if allow is None and not deny:
            return multiple()
        named = {name for name in (*(allow or ()), *(deny or ())) if name in NAMES}
        mask = ToolMask(allow, deny)
        unknown = named - set(self.inherited(scope))
        if unknown:
            with pytest.raises(UnknownToolError) as caught:
                self.views[scope].restrict(mask)
            assert set(caught.value.unknown) == unknown
            return multiple()
        registration = self.views[scope].restrict(mask)
        patterns = {name for name in (*(allow or ()), *(deny or ())) if name not in NAMES}
        assert set(registration.unmatched) == {
            pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in self.inherited(scope))
        }
        entry = (allow, deny)
        self.masks[scope].append(entry)
        self.expected_changes += 1
        return registration, lambda: _remove(self.masks[scope], entry)

    @rule(undone=consumes(registered))
    def undo(self, undone: Any) -> None:
        registration, forget = undone
        registration.close()
        registration.close()
        forget()
        self.expected_changes += 1

    @rule(scope=st.sampled_from(SCOPES), parent=st.sampled_from((None, *SCOPES)))
    def move(self, scope: str, parent: str | None) -> None:
        key = None if parent is None else self.views[parent].key
        try:
            self.bindings[scope].rebind(key)
        except ScopeCycleError:
            assert scope in self.chain(parent)
        else:
            self.parents[scope] = parent

    # -- what holds ----------------------------------------------------------------------------------------------------

    @invariant()
    def all_doors_agree(self) -> None:
        """Schemas, look-up, known names and the prompt tell the same tools as the model."""
        for scope, view in self.views.items():
            visible = self.visible(scope)
            assert {schema.name for schema in view.schemas()} == set(visible)
            assert len(view.schemas()) == len(visible)
            for name in NAMES:
                assert self.tools.get(name, view.key) is visible.get(name)
                assert self.tools.admits(name, view.key) is self.admits(scope, name)
            assert view.known_names() == {*self.inherited(scope), *self.held[scope]}
            rendering = self.prompts[scope].render_sync()
            assert [tool.name for tool in rendering.tools] == sorted(visible)
            assert [name for name in NAMES if f"Use {name}." in rendering.text] == [
                name for name in NAMES if name in visible
            ]
            for tool, origin in zip(rendering.tools, rendering.tool_origins, strict=True):
                assert origin == self.tools.origin_of(tool.name, view.key)

    @invariant()
    def changes_are_told_once(self) -> None:
        assert self.changes == self.expected_changes

    @invariant()
    def empty_layers_go(self) -> None:
        used = {scope for scope in SCOPES if self.held[scope] or self.masks[scope]}
        assert {key.name for key in self.tools.scopes} == used

    def teardown(self) -> None:
        """What is shown can be called, and nothing else."""
        anyio.run(self.call_all)

    async def call_all(self) -> None:
        for scope, view in self.views.items():
            visible = self.visible(scope)
            for name in NAMES:
                result = await self.tools.call(name, "{}", scope=view.key)
                if name in visible:
                    assert result.text == visible[name].function({})  # type: ignore[attr-defined]
                else:
                    assert result.code == "UNKNOWN_TOOL"
                    assert not any(f" {each}" in result.text for each in NAMES if each not in {*visible, name})


def _remove(masks: list[Any], mask: Any) -> None:
    masks.pop(next(at for at, each in enumerate(masks) if each is mask))


TestTools = Tools.TestCase
TestTools.settings = settings(stateful_step_count=25)


@given(st.permutations(NAMES), st.data())
def test_order_of_registration_changes_no_byte(order: list[str], data: st.DataObject) -> None:
    """The prompt's tools are a function of the set of tools: whoever came first, and whoever came back."""
    prompt = SystemPrompt()
    tools = ToolRegistry(prompt)
    registrations = {name: tools.register(stub(name)) for name in order}
    before = prompt.render_sync().tools
    for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True)):
        registrations[name].close()
        tools.register(stub(name))
    assert prompt.render_sync().tools == before
    assert [tool.name for tool in before] == sorted(NAMES)


def test_gone_scopes_leave_nothing() -> None:
    """A scope whose view is closed can be collected: no table keeps its key, its tools or its masks."""
    import gc
    import weakref

    prompt = SystemPrompt()
    tools = ToolRegistry(prompt)
    tools.register(stub("bash"))
    seen = []
    for _ in range(3):
        view = prompt.scope(ScopeKey("agent"))
        agent = tools.at(view)
        own = stub("own")
        agent.register(own)
        agent.restrict(deny=["bash"])
        assert [tool.name for tool in view.render_sync().tools] == ["own"]
        seen += [weakref.ref(view.key), weakref.ref(own.function)]
        view.close()
        del view, agent, own
    gc.collect()
    assert [ref() for ref in seen] == [None] * 6
