"""Logs that do not hold all content: that something changed is told all the same, or that nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.explain.support import Clock, Script

from foreword import Rendering, SystemPrompt, ToolSchema
from foreword.errors import TextNotFoundError
from foreword.explain import (
    Subject,
    compare,
    diff_of,
    find_steps,
    find_text,
    first_seen,
    session_cache,
    subject_at,
    subjects,
    tokens_of,
)
from foreword.session import Content, Log, open_log
from foreword.testing.memory_store import MemoryStore
from foreword.wire.messages import UserMessage
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio


@dataclass
class Shop:
    """A prompt of which everything can change."""

    code: str = "hunter1"
    rule: str = "Be kind."
    tool: str = "Search."
    prompt: SystemPrompt = field(default_factory=lambda: SystemPrompt(persona="You are a clerk."))

    def __post_init__(self) -> None:
        self.prompt.variable("code", lambda: self.code, sensitive=True)
        self.prompt.section("door", "It opens with {{code}}.", order=10)
        self.prompt.section("rules", lambda: self.rule, order=20)
        self.prompt.tools(lambda: [ToolSchema("search", self.tool, {"type": "object"})])

    def rendering(self) -> Rendering:
        return self.prompt.render_sync()


Change = Callable[[Shop], None]


def other_code(shop: Shop) -> None:
    shop.code = "hunter2"


def other_rule(shop: Shop) -> None:
    shop.rule = "Be rude."


def other_tool(shop: Shop) -> None:
    shop.tool = "Finds."


def nothing(shop: Shop) -> None:
    pass


async def two_steps(log: Log, change: Change, *, resumed: bool = False, model: str = "gpt-5.2") -> list[Subject]:
    """Two requests with a change between them."""
    shop, clock = Shop(), Clock()
    session = await log.create("s")
    Script(session, clock).step(shop.rendering(), "One.")
    if resumed:
        await session.close()
        session = await log.resume("s")
    change(shop)
    Script(session, clock).step(shop.rendering(), "Two.", config=ModelConfig("openai", model))
    await session.close()
    return [subject async for subject in await subjects(log, "s")]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("content", "change", "kind", "name"),
    [
        ("masked", other_code, "section", "door"),
        ("digests", other_code, "section", "door"),
        ("digests", other_rule, "section", "rules"),
        ("digests", other_tool, "tool", "search"),
    ],
)
async def test_a_change_is_told_though_neither_content_is_there(
    content: Content, change: Change, kind: str, name: str, masked: bool
) -> None:
    """Diff and cache name what changed, and show the marks of the two contents."""
    async with MemoryStore() as store, open_log(store, content=content) as log:
        old, new = await two_steps(log, change)
    [told, *others] = diff_of(old, new, masked=masked).changes
    assert (told.kind, told.name, told.action, told.owner) == (kind, name, "changed", "main")
    assert [(each.kind, each.name) for each in others] == ([("variable", "code")] if content == "masked" else [])
    broken_by = compare(old, new, masked=masked).broken_by
    assert broken_by is not None
    cause = ("variable", "code") if content == "masked" else (kind, name)
    assert (broken_by.cause, broken_by.name, broken_by.action) == (*cause, "changed")
    assert broken_by.old != broken_by.new
    assert broken_by.old.startswith("[")
    assert "hunter" not in repr((told, broken_by))


@pytest.mark.parametrize("content", ["masked", "digests"])
async def test_what_stayed_has_the_same_mark(content: Content) -> None:
    """Where nothing changed nothing is told, and the beginning is unbroken for sure."""
    async with MemoryStore() as store, open_log(store, content=content) as log:
        old, new = await two_steps(log, nothing)
    assert old.text == new.text
    diff = diff_of(old, new)
    assert (diff.changes, diff.config, diff.history and diff.history.gone) == ((), None, 0)
    assert compare(old, new).verdict == "kept"


async def test_another_model_is_told_by_its_digest() -> None:
    """Of a model that is not stored it is told that it is another one."""
    async with MemoryStore() as store, open_log(store, content="digests") as log:
        old, new = await two_steps(log, nothing, model="gpt-5.2-mini")
    assert diff_of(old, new).config is not None
    broken_by = compare(old, new).broken_by
    assert broken_by is not None
    assert broken_by.cause == "model"


async def test_a_salted_mark_says_so() -> None:
    """After a resume the same secret has another mark, which says that it is salted: nobody can tell."""
    async with MemoryStore() as store, open_log(store, content="masked") as log:
        old, new = await two_steps(log, nothing, resumed=True)
    [told, variable] = diff_of(old, new).changes
    assert (told.name, variable.name) == ("door", "code")
    assert "[sensitive, salted " in told.old
    assert "[sensitive, salted " in told.new


async def test_shared_text_is_the_same_everywhere() -> None:
    """What is not salted has one mark in all sessions, across resumes too."""
    async with MemoryStore() as store, open_log(store, content="digests") as log:
        old, new = await two_steps(log, nothing, resumed=True)
    assert [change.name for change in diff_of(old, new).changes] == ["door"]


async def test_histories_that_are_not_there_are_not_called_the_same() -> None:
    """Two placeholders look alike; only those of one and the same message count as the same."""
    shop = Shop()
    async with MemoryStore() as store, open_log(store, content="digests") as log:
        for name in ("one", "other"):
            session = await log.create(name)
            Script(session, Clock()).step(shop.rendering(), f"I am {name}.")
            if name == "one":
                fork = await session.fork(id="fork")
                Script(fork, Clock()).step(shop.rendering(), "More.")
                await fork.close()
            await session.close()
        one, other, fork_step = [await subject_at(log, each) for each in ("one@1", "other@1", "fork@2")]
    assert one.messages[0].message == other.messages[0].message == UserMessage("[not stored]")
    differing, shared = diff_of(one, other).history, diff_of(one, fork_step).history
    assert differing is not None
    assert (differing.kept, differing.gone) == (0, 1)
    assert shared is not None
    assert (shared.kept, shared.gone) == (1, 0)


async def test_a_compaction_of_what_is_not_there_breaks_the_beginning() -> None:
    """A message that took the place of others is not taken for the first of them."""
    shop, clock = Shop(), Clock()
    async with MemoryStore() as store, open_log(store, content="digests") as log:
        session = await log.create("s")
        script = Script(session, clock)
        script.step(shop.rendering(), "One.")
        session.replace_history(0, 1, UserMessage("So far: one."))
        script.step(shop.rendering(), "Two.")
        await session.close()
        told = (await session_cache(log, "s")).steps[1]
    assert told.broken_by is not None
    assert (told.broken_by.cause, told.broken_by.old, told.broken_by.new) == ("history", "[not stored]", "[not stored]")


async def test_reports_say_what_the_log_does_not_hold() -> None:
    """Sizes are those of placeholders, and a text that is not found may be there: each report says so."""
    async with MemoryStore() as store:
        async with open_log(store, content="digests") as log:
            old, new = await two_steps(log, nothing)
        named = (
            "section deployment:persona",
            "section door",
            "section rules",
            "tool search",
            "the model and its settings",
        )
        assert old.unstored == (*named, "1 message")
        assert new.unstored == (*named, "3 messages")
        assert tokens_of(old).unstored == compare(old, old).unstored == old.unstored
        assert diff_of(old, new).unstored == (old.unstored, new.unstored)
        with pytest.raises(TextNotFoundError, match=r"not in the log, so not looked through: .*section rules"):
            find_text(new, "Be kind.")


async def test_a_whole_log_is_told_as_ever() -> None:
    """Where all is stored there is no mark, and nothing is said of any."""
    async with MemoryStore() as store, open_log(store) as log:
        old, new = await two_steps(log, other_code)
    assert old.text == "You are a clerk.\n\nIt opens with hunter1.\n\nBe kind."
    assert old.unstored == new.unstored == ()
    broken_by = compare(old, new, masked=True).broken_by
    assert broken_by is not None
    assert (broken_by.old, broken_by.new) == ("[sensitive]", "[sensitive, changed]")


async def test_erased_sections_are_told_apart() -> None:
    """Two texts that were both erased are still two, though their names went with them."""
    async with MemoryStore() as store, open_log(store) as log:
        await two_steps(log, other_rule)
        await log.erase(session="s")
        old, new = [subject async for subject in await subjects(log, "s")]
    assert "[erased, " in old.text
    assert [change.action for change in diff_of(old, new).changes] == ["changed"]


async def test_erased_tools_go_by_their_content() -> None:
    """Where one of several goes, that one is told, and of those behind it nothing, though all names are gone."""
    prompt, tools = SystemPrompt(), [ToolSchema(name, f"Does {name}.", {"type": "object"}) for name in "abc"]
    prompt.tools(lambda: tuple(tools))
    async with MemoryStore() as store, open_log(store) as log:
        script = Script(await log.create("s"), Clock())
        script.step(prompt.render_sync(), "One.")
        del tools[1]
        script.step(prompt.render_sync(), "Two.")
        await script.session.close()
        await log.erase(session="s")
        old, new = [subject async for subject in await subjects(log, "s")]
    (gone,) = diff_of(old, new).changes
    assert (gone.kind, gone.action, gone.edit.old_at) == ("tool", "removed", 1)
    broken_by = compare(old, new).broken_by
    assert broken_by is not None
    assert (broken_by.cause, broken_by.action, broken_by.name) == ("tool", "removed", gone.name)


@pytest.mark.parametrize(("content", "mark"), [("full", "[erased]"), ("digests", "[not stored]")])
async def test_what_was_erased_is_told_from_what_was_never_stored(content: Content, mark: str) -> None:
    """The marks of the model say which of the two it was, and whether it changed."""
    async with MemoryStore() as store, open_log(store, content=content) as log:
        await two_steps(log, nothing, model="gpt-5.2-mini")
        await log.erase(session="s")
        old, new = [subject async for subject in await subjects(log, "s")]
    assert old.config is not None
    assert new.config is not None
    assert (old.config.provider, new.config.provider) == (mark, mark)
    assert old.config.model != new.config.model


async def test_a_mark_can_be_looked_for() -> None:
    """A mark is a text like any other: it is found, and where its content was first seen is told."""
    prompt, texts = SystemPrompt(persona="You are a clerk."), ["Be kind."]
    prompt.section("rules", lambda: texts[0], order=10)
    clock = Clock()
    async with MemoryStore() as store, open_log(store, content="digests") as log:
        session = await log.create("s")
        script = Script(session, clock)
        script.step(prompt.render_sync(), "One.")
        texts[0] = "Be rude."
        script.step(prompt.render_sync(), "Two.")
        script.step(prompt.render_sync(), "Three.")
        await session.close()
        mark = (await subject_at(log, "s@3")).sections[1].text
        seen = await first_seen(log, mark)
        found = [step.address for step in await find_steps(log, text=mark)]
    assert seen is not None
    assert str(seen.location) == "s@2/1"
    assert found == ["s@2/1", "s@3/1"]
