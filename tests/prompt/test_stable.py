"""Where the part of a system text ends that is the same in every step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import AssembleContext, AssembledSection, PromptAssembly, SystemPrompt, ToolSchema, render

pytestmark = pytest.mark.anyio


def prompt(**sections: object) -> SystemPrompt:
    made = SystemPrompt(include_harness_identity=False)
    for order, (name, text) in enumerate(sections.items()):
        made.section(name, text, order=order)  # type: ignore[arg-type]
    return made


def head(prompt: SystemPrompt) -> str:
    rendering = prompt.render_sync()
    return rendering.text[: rendering.stable_head]


def test_all_of_fixed_sections() -> None:
    """Sections that were registered as texts are stable; empty ones count for nothing."""
    assert head(prompt(a="A", nothing="", b="B\n\nB")) == "A\n\nB\n\nB"
    assert head(prompt()) == ""


def test_up_to_the_first_provider() -> None:
    """A function, a condition or a required tool ends it, and what comes behind does not count."""
    assert head(prompt(a="A", b=lambda: "B", c="C")) == "A"
    assert head(prompt(a=lambda: "A", b="B")) == ""
    conditional = prompt(a="A")
    conditional.section("b", "B", order=5, when=lambda context: True)
    assert head(conditional) == "A"
    guided = prompt(a="A")
    guided.section("b", "B", order=5, requires_tools={"t"})
    guided.tools([ToolSchema("t", "", {})])
    assert head(guided) == "A"


def test_variables() -> None:
    """A variable that was registered as a value is part of it, one that is asked in each step ends it."""
    made = prompt(a="A {{fixed}} {{{{x}}}}", b="B {{asked}}")
    made.variable("fixed", "1")
    made.variable("asked", lambda: "2")
    assert head(made) == "A 1 {{x}}"


def test_a_scope_has_its_own() -> None:
    """What a scope puts in the place of a section decides for that scope alone."""
    made = prompt(a="A", b="B")
    clerk, other = made.scope("clerk"), made.scope("other")
    clerk.section("a", "its own", order=0)
    other.section("b", lambda: "made", order=1)
    assert head(clerk) == "its own\n\nB"
    assert head(other) == "A"
    assert head(made) == "A\n\nB"


async def test_what_listeners_change() -> None:
    """A section that a listener puts in, and a value that one sets, end it; sections that it leaves alone do not."""
    made = prompt(a="A", b="B {{v}}", c="C")
    made.variable("v", "1")

    async def swap(assembly: PromptAssembly, context: AssembleContext, call_next):  # type: ignore[no-untyped-def]
        assembly.sections.swap("c", text="changed")
        return await call_next()

    async def look(assembly: PromptAssembly, context: AssembleContext, call_next):  # type: ignore[no-untyped-def]
        assert assembly.sections
        return await call_next()

    looking = made.on_assemble(look)
    assert (await made.render()).stable_head == len("A\n\nB 1\n\nC")
    looking.close()
    listening = made.on_assemble(swap)
    assert (await made.render()).stable_head == len("A\n\nB 1")
    listening.close()

    async def put(assembly: PromptAssembly, context: AssembleContext, call_next):  # type: ignore[no-untyped-def]
        assembly.variables["v"] = "2"
        assembly.sections.append(AssembledSection("d", "D"))
        return await call_next()

    made.on_assemble(put)
    rendering = await made.render()
    assert rendering.text[: rendering.stable_head] == "A"


def test_a_complete_section() -> None:
    """A complete section is all there is."""
    made = prompt(a="A", b=lambda: "B")
    made.section("all", "ALL", order=9, complete=True)
    assert head(made) == "ALL"


def test_an_override() -> None:
    """A deployment's text is as stable as any other."""
    made = prompt(a=lambda: "A", b="B")
    made.override("a", text="fixed", why="a test")
    assert head(made) == "fixed\n\nB"


def test_by_hand() -> None:
    """Of an assembly that was made by hand, nothing is known to be stable."""
    assert render(PromptAssembly([AssembledSection("a", "A")])).stable_head == 0


@given(st.lists(st.sampled_from(["", "x", "y\n\nz"]), max_size=5), st.integers(0, 5))
def test_it_ends_with_a_section(texts: list[str], made_at: int) -> None:
    """The text begins with it, and it is a whole number of sections, whatever comes behind."""
    made = SystemPrompt(include_harness_identity=False)
    for order, text in enumerate(texts):
        made.section(f"s{order}", (lambda text=text: text) if order == made_at else text, order=order)
    rendering = made.render_sync()
    assert rendering.text[: rendering.stable_head] == "\n\n".join(text for text in texts[:made_at] if text)
