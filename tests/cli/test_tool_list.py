"""Tools: their parameters summed up, their size, their owners."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.support import run, write

from foreword import SystemPrompt, ToolSchema
from foreword.cli.tool_list import size_of, summary

STRING = {"type": "string"}


def an_object(*required: str, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"type": "object"}, "()"),
        (an_object("path", path=STRING, limit={"type": "integer"}), "(path: string, limit?: integer)"),
        (an_object(how={"enum": ["fast", 1, None]}), '(how?: "fast" | 1 | null)'),
        (an_object(how={"enum": [f"choice number {at}" for at in range(9)]}), "(how?: one of 9 values)"),
        (an_object(kind={"const": "a"}), '(kind?: "a")'),
        (an_object(names={"type": "array", "items": STRING}), "(names?: [string])"),
        (an_object(names={"type": "array"}), "(names?: [any])"),
        (an_object(name={"type": ["string", "null"]}), "(name?: string | null)"),
        (an_object(name={"anyOf": [STRING, {"type": "null"}]}), "(name?: string | null)"),
        (an_object(at=an_object("x", x={"type": "number"}, y={"type": "number"})), "(at?: {x: number, y?: number})"),
        (an_object(other={"$ref": "#/$defs/other"}), "(other?: #/$defs/other)"),
        (an_object(anything=True, nothing={}), "(anything?: any, nothing?: any)"),
    ],
)
def test_parameters_are_summed_up(parameters: dict[str, object], expected: str) -> None:
    """Names, types and what is required fit one line."""
    assert summary(parameters) == expected


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "items", "enum", "anyOf", "oneOf", "const", "x"]),
            inner | st.just("object") | st.just("array"),
            max_size=4,
        ),
        max_leaves=15,
    )
)  # fmt: skip
def test_no_schema_is_too_strange(schema: object) -> None:
    """A schema that is no JSON Schema is summed up all the same."""
    assert summary({"properties": {"x": schema}}).startswith("(x?: ")


def test_size_is_that_of_the_compact_json() -> None:
    """A tool's size counts the characters of its compact JSON, description and parameters included."""
    assert size_of(ToolSchema("t", "é", {"type": "object"})) == len(
        '{"name":"t","description":"é","parameters":{"type":"object"}}'
    )


def test_tools_are_listed_with_their_owners(tmp_path) -> None:
    """Each tool comes with owner, name, size, description and parameters; the scope too, if it stands in one."""
    target = write(
        tmp_path,
        """
        from foreword import SystemPrompt, ToolSchema
        base = SystemPrompt()
        base.owner("files").tools([ToolSchema("read", "Read a file.\\nAll of it.", {"type": "object"})])
        prompt = base.scope("team")
        prompt.tools([ToolSchema("ask", "Ask.", {"type": "object", "properties": {"whom": {"type": "string"}}})])
        """,
    )
    rows = [row.split() for row in run("show", f"{target}:prompt", "--tools").out.splitlines()]
    assert rows == [
        ["Tools", "193", "characters", "as", "JSON,", "2", "tools", "by", "2", "owners"],
        [],
        ["team", "ask", "106", "│", "Ask."],
        ["in", "scope", "team", "│", "(whom?:", "string)"],
        [],
        ["files", "read", "87", "│", "Read", "a", "file."],
        ["│", "All", "of", "it."],
        ["│", "()"],
    ]


def test_a_tool_that_a_listener_brought_names_it(tmp_path) -> None:
    """A tool that no provider gave is told with the listener's owner."""
    target = write(
        tmp_path,
        """
        from foreword import SystemPrompt, ToolSchema
        prompt = SystemPrompt()
        async def bring(assembly, context, call_next):
            assembly.tools.append(ToolSchema("extra", "Extra.", {"type": "object"}))
            return await call_next()
        prompt.owner("bringer").on_assemble(bring)
        """,
    )
    out = run("show", f"{target}:prompt", "--tools").out
    assert ["bringer", "extra"] in [row.split()[:2] for row in out.splitlines()]
    assert "by listener bring" in out


def test_no_tools_are_no_error() -> None:
    """A prompt without tools has an empty list of them."""
    assert SystemPrompt().render_sync().tools == ()
