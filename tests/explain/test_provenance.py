"""Provenance: every character of a prompt has the owner that an independent model says it has, live and in the log."""

import random
from pathlib import Path

import pytest
from tests.explain.support import Clock, Model, Piece, Script, a_log, a_subject, joined, random_prompt, tool

from foreword import SystemPrompt
from foreword.errors import TextNotFoundError
from foreword.explain import Occurrence, Subject, explain_line, find_text, subject_at, subject_of
from foreword.prompt.assembly import AssembledSection
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage


def check(subject: Subject, model: Model, rng: random.Random) -> None:
    """The whole, random stretches of it and each line are told as the model tells them."""
    assert subject.text == model.text()
    if not subject.text:
        return
    (whole,) = find_text(subject, subject.text)
    assert told(whole) == model.pieces()
    size = len(subject.text)
    for _ in range(6):
        start = rng.randrange(size)
        end = min(size, start + rng.randint(1, 40))
        text = subject.text[start:end]
        at = line_and_column(subject.text, start)
        occurrences = {(each.line, each.column): each for each in find_text(subject, text)}
        if at in occurrences:  # else it stands, too, where it overlaps itself from the left
            assert told(occurrences[at]) == model.between(start, end)
    start = 0
    for number, line in enumerate(subject.text.split("\n"), 1):
        if line:
            assert told(explain_line(subject, number)) == model.between(start, start + len(line))
        start += len(line) + 1


def told(occurrence: Occurrence) -> list[Piece]:
    return list(joined(Piece(each.text, each.owner, each.section, each.variable) for each in occurrence.stretches))


def line_and_column(text: str, at: int) -> tuple[int, int]:
    before = text[:at].split("\n")
    return len(before), len(before[-1]) + 1


def test_500_random_prompts_live() -> None:
    """Of 500 random registries every stretch and every line has the owner, section and variable of the model."""
    for seed in range(500):
        prompt, model = random_prompt(seed)
        check(subject_of(prompt.render_sync()), model, random.Random(seed))


@pytest.mark.anyio
async def test_random_prompts_in_a_log() -> None:
    """The same holds for steps of a log, read when all registries are gone; sources and versions are kept."""
    models: list[Model] = []
    live: list[Subject] = []
    async with a_log(clock := Clock()) as log:
        session = await log.create("s")
        script = Script(session, clock)
        for seed in range(40):
            prompt, model = random_prompt(seed)
            rendering = prompt.render_sync()
            script.step(rendering, f"question {seed}")
            models.append(model)
            live.append(subject_of(rendering))
        await session.flush()
        for number, model in enumerate(models, 1):
            subject = await subject_at(log, f"s@{number}")
            check(subject, model, random.Random(number))
            assert [(span.origin, span.source) for span in subject.spans if span.kind == "variable"] == [
                (span.origin, span.source) for span in live[number - 1].spans if span.kind == "variable"
            ]
            assert subject.trace.to_json() == live[number - 1].trace.to_json()


def test_a_stretch_tells_all_that_is_known_of_it(tmp_path: Path) -> None:
    """Owner, scope, section, variable and the line of the file in which it was written."""
    (tmp_path / "rules.md").write_text("Be kind.\n\nQuote {{currency}}.\n")
    prompt = SystemPrompt()
    prompt.owner("acme").variable("currency", "EUR")
    team = prompt.scope("team")
    team.section("acme:rules", tmp_path / "rules.md", order=1)
    subject = subject_of(team.render_sync())
    (occurrence,) = find_text(subject, "Quote EUR.")
    quote, value, dot = occurrence.stretches
    assert (quote.text, quote.owner, quote.origin.scope, quote.section) == ("Quote ", "team", "team", "acme:rules")
    assert str(quote.source).endswith("rules.md:3")
    assert (value.text, value.owner, value.variable, value.section_origin) == ("EUR", "acme", "currency", dot.origin)
    assert str(value.source).endswith(f"{Path(__file__).name}:{value.origin.source.line}")
    assert (occurrence.place, occurrence.line, occurrence.column) == ("system", 3, 1)


def test_a_version_is_told_with_what_comes_from_a_package() -> None:
    """What a distribution contributed bears its name and version."""
    import anyio

    prompt = SystemPrompt()
    exec(compile("prompt.section('a', 'From a package.', order=1)", anyio.__file__, "exec"), {"prompt": prompt})
    (occurrence,) = find_text(subject_of(prompt.render_sync()), "package")
    distribution = occurrence.stretches[0].origin.distribution
    assert distribution is not None
    assert distribution.startswith("anyio 4")


def test_listeners_are_named() -> None:
    """What a listener put there is told with the listener."""
    prompt = SystemPrompt(persona="Hello.")

    @prompt.owner("late").on_assemble
    async def add(assembly, context, call_next):
        assembly.sections.append(AssembledSection("late:note", "By the way."))
        return await call_next()

    (occurrence,) = find_text(subject_of(prompt.render_sync()), "way")
    assert str(occurrence.stretches[0].origin.listener).endswith("add")
    assert occurrence.stretches[0].owner == "late"


def test_all_parts_of_a_request_are_looked_through() -> None:
    """Tools, system text, runtime contexts and history: each place is told with what is known of it."""

    def build(prompt: SystemPrompt) -> None:
        prompt.owner("shop").tools([tool("find", "Finds needle.")])
        prompt.owner("rules").section("rules", "A needle.", order=1)
        prompt.owner("clock").context("now", "needle o'clock", order=1)

    call = ToolCall("1", "find", '{"what": "needle"}')
    subject = a_subject(
        build, UserMessage("Find a needle."), AssistantMessage("", (call,)), ToolMessage("1", "find", "needle")
    )
    found = find_text(subject, "needle")
    assert [(each.place, each.name, each.message) for each in found] == [
        ("tool", "find", None),
        ("system", None, None),
        ("contexts", None, None),
        ("message", "the user", 0),
        ("message", "the model", 1),
        ("message", "a tool", 2),
    ]
    assert [each.stretches[0].owner for each in found[:3]] == ["shop", "rules", "clock"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("be KIND", "other capitals"),
        ("Be\n  kind", "other blanks"),
        ("unheard of", "--missing NAME"),
        ("", "at least one character"),
    ],
)
def test_a_text_that_stands_nowhere_is_an_error_that_helps(text: str, why: str) -> None:
    """It tells whether capitals or blanks are what differs."""
    subject = a_subject(lambda prompt: prompt.section("a", "Be kind.", order=1))
    with pytest.raises(TextNotFoundError, match=why):
        find_text(subject, text)


def test_lines_count_from_one() -> None:
    """A line that is not there is an error that tells how many there are; an empty line is the assembler's."""
    subject = a_subject(lambda prompt: [prompt.section(name, name, order=1) for name in "ab"])
    assert [stretch.owner for stretch in explain_line(subject, 2).stretches] == ["assembler"]
    for number in (0, 4):
        with pytest.raises(TextNotFoundError, match="it has 3 lines"):
            explain_line(subject, number)
    with pytest.raises(TextNotFoundError, match="it has 0 lines"):
        explain_line(subject, 1, "contexts")


@pytest.mark.anyio
async def test_lines_of_files_count_on_in_the_log(tmp_path: Path) -> None:
    """A stretch in the middle of a text from a file has its own line of that file, in the log as live."""
    (tmp_path / "rules.md").write_text("One.\nTwo {{v}}.\nThree.\nFour.\n")
    prompt = SystemPrompt()
    prompt.owner("v").variable("v", "of it")
    prompt.owner("acme").section("rules", tmp_path / "rules.md", order=1)
    rendering = prompt.render_sync()
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        script.step(rendering, "Hi.")
        await script.session.flush()
        subjects = [subject_of(rendering), await subject_at(log, "s")]
    for subject in subjects:
        for number, word in enumerate(("One", "Two", "Three", "Four"), 1):
            (occurrence,) = find_text(subject, word)
            assert str(occurrence.stretches[0].source).endswith(f"rules.md:{number}"), word
            assert str(explain_line(subject, number).stretches[0].source).endswith(f"rules.md:{number}")
