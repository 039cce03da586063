"""The registry: registering, shadowing, masking, and what the prompt is told of it."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.tools.support import OBJECT, names, registry, stub

from foreword import (
    GLOBAL,
    TOOL_ORDER_REST,
    AssembleContext,
    DuplicateEntryError,
    ForewordError,
    InactiveContextError,
    InvalidMaskError,
    InvalidOptionError,
    InvalidToolSchemaError,
    ReservedToolNameError,
    ScopeKey,
    Source,
    SystemPrompt,
    ToolDefinition,
    ToolMask,
    ToolRegistry,
    ToolSchema,
    UnknownToolError,
    UnknownToolOrderError,
    bind_parent,
)

# -- registering -------------------------------------------------------------------------------------------------------


def test_every_form_of_registering() -> None:
    """As a call or a decorator, with options or without, from a function, a schema or a definition."""
    _, tools = registry()

    @tools.register
    def one(a: int) -> int:
        """The first."""
        return a

    @tools.register()
    async def two(a: int) -> int:
        return a

    @tools.register(name="third", description="The third.", timeout=3)
    def three() -> None: ...

    @tools.register(parameters={"type": "object", "properties": {"b": {}}})
    def four(arguments: dict[str, Any]) -> None: ...

    def five() -> None: ...

    assert tools.register(five) is five
    assert tools.register(five, name="sixth") is five
    registration = tools.register(ToolDefinition("seventh", "", OBJECT, print))
    assert registration.label == f'tool "seventh" of main ({Source(__file__, 0).file}:{_line_of("seventh")})'
    assert names(tools) == ["one", "two", "third", "four", "five", "sixth", "seventh"]
    assert one(2) == 2
    assert tools.get("third").timeout == 3  # type: ignore[union-attr]
    assert tools.get("four").parameters["properties"] == {"b": {}}  # type: ignore[union-attr]


def _line_of(word: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if f'ToolDefinition("{word}"' in line)


@pytest.mark.parametrize(
    ("act", "error", "told"),
    [
        (lambda tools: tools.register(stub(TOOL_ORDER_REST)), ReservedToolNameError, "main (script.py:1) provides"),
        (lambda tools: tools.register(stub("held")), DuplicateEntryError, 'tool "held" of main (script.py:1) is already'),
        (lambda tools: tools.register(print, name="p", parameters=OBJECT, timeout=0), InvalidOptionError, "option timeout"),
        (lambda tools: tools.register(print, name="p", parameters=OBJECT, timeout="3"), InvalidOptionError, "option timeout"),
        (lambda tools: tools.register(5), InvalidToolSchemaError, "is an int"),
        (lambda tools: tools.register(print, name="p", parameters=OBJECT, sensitive="no"), InvalidToolSchemaError, 'the schema of tool "p": sensitive must be True or False, not \'no\''),
        (lambda tools: tools.register(stub("a"), timeout=3), TypeError, "its own options"),
        (lambda tools: tools.register(print, name="", parameters=OBJECT), InvalidToolSchemaError, "non-empty"),
    ],
)  # fmt: skip
def test_what_is_refused(act: Any, error: type[Exception], told: str) -> None:
    """A refused registration names the culprit and changes nothing, not even for those who listen for changes."""
    prompt, tools = registry()
    tools.register(stub("held"), source=Source("script.py", 1))
    changes: list[int] = []
    prompt.on_change(lambda: changes.append(1))

    class Placed:
        def register(self, tool: Any, **options: Any) -> Any:
            return tools.register(tool, source=Source("script.py", 1), **options)

    with pytest.raises(error) as caught:
        act(Placed())
    assert told in str(caught.value)
    if isinstance(caught.value, ForewordError):
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert names(tools) == ["held"]
    assert not changes


def test_a_registration_is_undone_once() -> None:
    """Closing takes exactly this tool away; a namesake that came later stays."""
    _, tools = registry()
    first = tools.register(stub("a"))
    with first:
        assert names(tools) == ["a"]
    assert names(tools) == []
    tools.register(stub("a"))
    first.close()
    assert names(tools) == ["a"]


def test_each_change_is_told_once() -> None:
    """Tools and masks that come and go are changes of the prompt, one each; the next assembly shows them."""
    prompt, tools = registry()
    view = prompt.scope("agent")
    agent = tools.at(view)
    told: list[list[str]] = []
    prompt.on_change(lambda: told.append([tool.name for tool in view.render_sync().tools]))
    tool = tools.register(stub("a"))
    mask = agent.restrict(deny=["a"])
    own = agent.register(stub("a", "own"))
    mask.close()
    own.close()
    tool.close()
    assert told == [["a"], [], ["a"], ["a"], ["a"], []]


def test_a_change_listener_that_raises_takes_it_back() -> None:
    """A listener's error takes a tool, or a mask, back and reaches whoever registered."""
    prompt, tools = registry()
    tools.register(stub("a"))
    agent = tools.at(prompt.scope("agent"))
    armed: list[int] = [1]

    @prompt.on_change
    def refuse() -> None:
        if armed:
            armed.pop()
            raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError):
        tools.register(stub("b"))
    armed.append(1)
    with pytest.raises(ZeroDivisionError):
        agent.restrict(deny=["a"])
    assert names(agent) == ["a"]
    assert tools.scopes == ()


def test_closing_a_view_takes_its_tools() -> None:
    """What an owner registered goes with it; a closed view refuses; a scope leaves nothing behind."""
    prompt, tools = registry()
    view = prompt.scope("agent")
    agent = tools.at(view)
    tools.register(stub("a"))
    agent.register(stub("b"))
    agent.restrict(deny=["a"])
    owned = tools.at(prompt.owner("plugin"))
    owned.register(stub("c"))
    assert (names(agent), names(tools)) == (["c", "b"], ["a", "c"])
    assert owned.origin_of("c").owner == "plugin"  # type: ignore[union-attr]
    assert tools.scopes == (view.key,)
    view.close()
    assert names(tools, view.key) == ["a", "c"]
    assert tools.scopes == ()
    assert not agent.active
    for act in (lambda: agent.register(stub("d")), lambda: agent.restrict(deny=["a"])):
        with pytest.raises(InactiveContextError):
            act()
    prompt.close()
    assert names(tools) == []


def test_views() -> None:
    """`at` takes views of the same prompt only; the registry stands on the global layer."""
    prompt, tools = registry()
    assert tools.at(prompt.scope("agent")).key.name == "agent"
    assert tools.key is GLOBAL
    with pytest.raises(ValueError, match="another prompt"):
        tools.at(SystemPrompt())
    with pytest.raises(InvalidOptionError, match=r"global layer.*tools\.at"):
        ToolRegistry(prompt.scope("agent"))
    with pytest.raises(TypeError, match="SystemPrompt, not None"):
        ToolRegistry(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"view of their prompt, not a str: tools\.at"):
        tools.at("agent")  # type: ignore[arg-type]


def test_one_registry_a_prompt() -> None:
    """A second one would show the model a namesake of each tool; it is refused, and names the first, while that is there."""
    prompt = SystemPrompt()
    first = prompt.owner("first")
    ToolRegistry(first).register(stub("refund"))
    for view in (prompt, first):
        with pytest.raises(
            InvalidOptionError, match=r"option prompt .* of first \(.*test_registry\.py:\d+\); use that"
        ):
            ToolRegistry(view)
    assert [tool.name for tool in prompt.render_sync().tools] == ["refund"]
    first.close()
    ToolRegistry(prompt).register(stub("refund"))
    assert [tool.name for tool in prompt.render_sync().tools] == ["refund"]


# -- what a scope sees -------------------------------------------------------------------------------------------------


def test_scopes_and_shadows() -> None:
    """A scope's tool is seen there and below, in the place of its namesake further out, listed once."""
    prompt, tools = registry()
    outer = prompt.scope("outer")
    inner = prompt.scope("inner", outer)
    tools.at(inner).register(stub("a", "inner"))
    tools.register(stub("a", "global"))
    tools.register(stub("b"))
    tools.at(outer).register(stub("c"))
    assert (names(tools), names(tools, outer), names(tools, inner)) == (["a", "b"], ["a", "b", "c"], ["a", "b", "c"])
    assert tools.get("a", outer) is tools.get("a") is not tools.get("a", inner)
    assert tools.get("c") is None
    assert tools.origin_of("c", inner).scope == "outer"  # type: ignore[union-attr]
    assert tools.origin_of("c") is None


def test_a_mask_hides_what_is_inherited() -> None:
    """Global tools and those of enclosing scopes are masked, a scope's own never; the mask reaches below, not above."""
    prompt, tools = registry()
    outer = prompt.scope("outer")
    inner = prompt.scope("inner", outer)
    tools.register(stub("a"))
    tools.at(outer).register(stub("b"))
    tools.at(inner).register(stub("c"))
    tools.at(outer).restrict(allow=[])
    assert (names(tools), names(tools, outer), names(tools, inner)) == (["a"], ["b"], ["c"])
    assert tools.known_names(inner) == {"a", "b", "c"}
    assert tools.known_names(outer) == {"a", "b"}


def test_an_own_tool_stands_for_a_masked_namesake() -> None:
    """A scope's own tool of a name that a mask hides is there."""
    prompt, tools = registry()
    tools.register(stub("a", "global"))
    agent = tools.at(prompt.scope("agent"))
    agent.restrict(deny=["a"])
    assert names(agent) == []
    own = stub("a", "own")
    agent.register(own)
    assert agent.get("a") is own
    assert names(agent) == ["a"]


def test_masks_add_up() -> None:
    """Of several masks each must admit; lifting one leaves the others."""
    prompt, tools = registry()
    for name in "abc":
        tools.register(stub(name))
    agent = tools.at(prompt.scope("agent"))
    first = agent.restrict(deny=["a"])
    second = agent.restrict(ToolMask(allow=["a", "b"]))
    assert names(agent) == ["b"]
    first.close()
    assert names(agent) == ["a", "b"]
    second.close()
    assert names(agent) == ["a", "b", "c"]


def test_masks_are_live() -> None:
    """A tool that comes later is judged as those that were there; so is one of a scope that moves."""
    prompt, tools = registry()
    tools.register(stub("a"))
    view = prompt.scope("agent")
    agent = tools.at(view)
    agent.restrict(deny=["mcp__*"])
    tools.register(stub("mcp__x"))
    tools.register(stub("b"))
    assert names(agent) == ["a", "b"]
    other = tools.at(prompt.scope("other"))
    other.register(stub("c"))
    view.binding.rebind(other.key)  # type: ignore[union-attr]
    assert names(agent) == ["a", "b", "c"]


def test_names_in_masks() -> None:
    """A name of no inherited tool is an error with the nearest one: a typo, a tool of the scope's own."""
    prompt, tools = registry()
    tools.register(stub("bash"))
    agent = tools.at(prompt.scope("agent"))
    agent.register(stub("own"))
    with pytest.raises(UnknownToolError, match='"bsah", "own"; did you mean "bash"') as caught:
        agent.restrict(deny=["bsah", "own", "bash"])
    assert (caught.value.unknown, caught.value.known) == (("bsah", "own"), ("bash",))
    assert "agent in scope agent (" in str(caught.value)
    assert __name__.rpartition(".")[2] in str(caught.value)
    assert names(agent) == ["bash", "own"]
    agent.restrict(deny=["bash"])
    agent.restrict(deny=["bash"])  # a hidden tool is inherited all the same


def test_a_mask_needs_a_scope() -> None:
    """The global layer inherits nothing, so it cannot be masked; an empty mask names its owner."""
    prompt, tools = registry()
    tools.register(stub("a"))
    with pytest.raises(InvalidMaskError, match=r"a tool mask of main \(.*mask a scope") as caught:
        tools.restrict(deny=["a"])
    assert caught.value.kind == "unscoped_mask"
    agent = tools.at(prompt.scope("agent"))
    with pytest.raises(InvalidMaskError, match="a tool mask of agent in scope agent"):
        agent.restrict()
    with pytest.raises(TypeError, match=r"a str is no ToolMask; give its lists by name: restrict\(deny="):
        agent.restrict("bash")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match=r"option later of tool mask .* must be True or False, not 'no'"):
        agent.restrict(deny=["a"], later="no")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not both"):
        agent.restrict(ToolMask(allow=[]), deny=["a"])


def test_a_pattern_that_means_nothing_yet(caplog: pytest.LogCaptureFixture) -> None:
    """It is no error, since its tools may be still to come: it is logged, and the registration knows it."""
    prompt, tools = registry()
    agent = tools.at(prompt.scope("agent"))
    with caplog.at_level(logging.WARNING, "foreword.tools"):
        mask = agent.restrict(allow=["mcp__git__*"])
    assert mask.unmatched == ("mcp__git__*",)
    (record,) = caplog.records
    assert 'the pattern "mcp__git__*" of tool mask "mcp__git__*" of agent in scope agent (' in record.message
    tools.register(stub("mcp__git__log"))
    assert mask.unmatched == ()
    assert names(agent) == ["mcp__git__log"]


def test_names_of_tools_that_are_still_to_come(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever masks before the tools are there says so; then names need not be known, and nothing is logged."""
    prompt, tools = registry()
    agent = tools.at(prompt.scope("agent"))
    with caplog.at_level(logging.WARNING, "foreword.tools"):
        mask = agent.restrict(deny=["bash", "mcp__*"], later=True)
    assert mask.unmatched == ("bash", "mcp__*")
    assert not caplog.records
    for name in ("bash", "mcp__x", "read"):
        tools.register(stub(name))
    assert mask.unmatched == ()
    assert names(agent) == ["read"]


def test_masks_for_tools_that_stand_elsewhere() -> None:
    """Whoever has tools of their own can ask what a scope's masks say of a name."""
    prompt, tools = registry()
    tools.register(stub("a"))
    view = prompt.scope("agent")
    tools.at(view).restrict(deny=["a", "mcp__*"])
    theirs = [ToolSchema(name, "", {}) for name in ("mcp__x", "plain")]
    prompt.tools(lambda context: [each for each in theirs if tools.admits(each.name, context.scope)])
    assert [tool.name for tool in view.render_sync().tools] == ["plain"]
    assert [tool.name for tool in prompt.render_sync().tools] == ["a", "mcp__x", "plain"]


# -- what the prompt is told -------------------------------------------------------------------------------------------


def test_the_prompt_shows_who_brought_a_tool() -> None:
    """Each tool of a rendering has the owner, scope and line of whoever registered it."""
    prompt, tools = registry()
    plugin = tools.at(prompt.owner("billing"))
    view = prompt.scope("agent")

    @plugin.register
    def refund(order: str) -> str:
        return order

    tools.at(view).register(stub("report"))
    rendering = view.render_sync()
    assert [tool.name for tool in rendering.tools] == ["refund", "report"]
    billing, agent = rendering.tool_origins
    assert billing is not None
    assert agent is not None
    assert (billing.owner, billing.scope, agent.owner, agent.scope) == ("billing", None, "agent", "agent")
    assert str(billing.source) == f"{Source(__file__, 0).file}:{refund.__code__.co_firstlineno}"
    assert agent.source is not None
    assert agent.source.line == billing.source.line + 4  # type: ignore[union-attr]


def test_guidance_follows_masks() -> None:
    """A section goes with the tool that it requires, and the trace says which mask took that away."""
    prompt, tools = registry()
    prompt.section("tool:edit", "Use edit.", order=100, requires_tools=["edit"])
    tools.register(stub("edit"))
    tools.register(stub("write"))
    view = prompt.scope("agent")
    assert "Use edit." in view.render_sync().text
    tools.at(view).restrict(allow=["write"], source=Source("agents.py", 7))
    rendering = view.render_sync()
    assert rendering.text == ""
    assert rendering.missing("tool:edit").reason == "requires_tools:edit"  # type: ignore[union-attr]
    (event,) = (event for event in rendering.trace.about("edit") if event.kind == "tool")
    assert str(event) == (
        'collect: tool "edit" of main left out by tool mask "write" of agent in scope agent (agents.py:7) (hidden)'
    )
    assert "Use edit." in prompt.render_sync().text


def test_a_masked_tool_is_no_typo_in_tool_order() -> None:
    """`tool_order` may list what a mask hides; a name that nobody registered is an error."""
    prompt, tools = registry(tool_order=["edit", TOOL_ORDER_REST, "ask"])
    view = prompt.scope("agent")
    tools.register(stub("ask"))
    with pytest.raises(UnknownToolOrderError, match='"edit"'):
        view.render_sync()
    for name in ("write", "edit"):
        tools.register(stub(name))
    tools.at(view).restrict(deny=["edit"])
    assert [tool.name for tool in view.render_sync().tools] == ["write", "ask"]
    assert [tool.name for tool in prompt.render_sync().tools] == ["edit", "write", "ask"]


def test_the_scope_of_an_assembly_counts() -> None:
    """The tools are those of the scope that is assembled for, by whichever view it is asked."""
    prompt, tools = registry()
    view = prompt.scope("agent")
    tools.at(view).register(stub("a"))
    key = ScopeKey("child")
    bind_parent(key, view)
    context = AssembleContext(scope=key)
    assert [tool.name for tool in prompt.render_sync(context).tools] == ["a"]
    assert [tool.name for tool in view.render_sync(AssembleContext(scope=GLOBAL)).tools] == []
    assert anyio.run(lambda: view.render()).tools == prompt.render_sync(context).tools


def test_unchanged_tools_are_the_same_objects() -> None:
    """As long as nothing changes, steps share the schemas and their order."""
    prompt, tools = registry()
    view = prompt.scope("agent")
    for name in "abc":
        tools.register(stub(name))
    tools.at(view).restrict(deny=["b"])
    assert view.render_sync().tools is view.render_sync().tools
    assert tools.schemas(view)[0] is prompt.render_sync().tools[0]


def test_what_stands_beside_it() -> None:
    """Tools of plain providers and those of the registry come together; order is by name."""
    prompt, tools = registry()
    prompt.tools([ToolSchema("b", "", {})])
    tools.register(stub("c"))
    tools.register(stub("a"))
    rendering = prompt.render_sync()
    assert [tool.name for tool in rendering.tools] == ["a", "b", "c"]
    assert names(tools) == ["c", "a"]
