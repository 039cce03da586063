"""FW3: tools and their guidance."""

from __future__ import annotations

import pytest
from tests.explain.lint.support import clerk, codes, found, only, tool

from foreword import SystemPrompt, ToolProviderResult, ToolRegistry
from foreword.explain.lint import LintConfig, alint


def test_an_unknown_name_in_tool_order_is_found() -> None:
    """A misspelt name, with the nearest tool; and the scopes where it is none."""
    prompt = SystemPrompt(persona="x", tool_order=["refnd", "<unlisted-tools>"])
    prompt.tools([tool("refund")])
    finding = only(prompt, "FW301")
    assert finding.message == 'tool_order lists "refnd", which is no tool'
    assert found(prompt, "FW200") == []
    assert 'did you mean "refund"?' in finding.way_out
    prompt.scope("team").tools([tool("refnd")])
    assert only(prompt, "FW301").message.endswith("in the global layer")


def test_known_names_in_tool_order_are_quiet() -> None:
    """Listed tools that are there, or hidden but known; and where a provider has never answered, nothing can be told."""
    prompt = SystemPrompt(persona="x", tool_order=["a", "b", "<unlisted-tools>"])
    prompt.tools(lambda: ToolProviderResult([tool("a")], known_names=["a", "b"]))
    assert found(prompt, "FW301") == []
    prompt = SystemPrompt(persona="x", tool_order=["a", "<unlisted-tools>"])
    prompt.tools(lambda: ToolProviderResult([tool("a")]), when=lambda _: False)
    assert found(prompt, "FW301") == []


def test_guidance_that_is_not_bound_is_found() -> None:
    """A section called tool:NAME without requires_tools, with its tool and without."""
    prompt = clerk()
    prompt.owner("shell").section("tool:run", "Run it.", order=100)
    assert 'and there is no tool "run"' in only(prompt, "FW302").message
    prompt.tools([tool("run")])
    assert only(prompt, "FW302").message.endswith("is guidance for a tool and does not require it")


def test_guidance_that_speaks_of_a_hidden_tool_is_found() -> None:
    """A section that names a tool in backticks which a mask hides from a scope."""
    prompt = clerk("Search first, then `refund(order)` it.")
    tools = ToolRegistry(prompt)

    @tools.register
    def refund(order: str) -> str:
        """Refund an order."""
        return order

    tools.at(prompt.scope("intern")).restrict(deny=["refund"])
    finding = only(prompt, "FW302")
    assert finding.message == 'section "desk:text" speaks of the tool `refund`, which is hidden in scope "intern"'


@pytest.mark.anyio
async def test_a_tool_that_a_listener_takes_away_is_hidden() -> None:
    """As the masks of a deployment's agents do."""
    prompt = clerk("Call `refund` once.")
    prompt.tools([tool("refund"), tool("search")])
    agent = prompt.scope("intern")

    @agent.on_assemble
    async def mask(assembly, context, call_next):
        assembly.tools.drop("refund")
        return await call_next()

    assert codes(await alint(prompt, LintConfig(select=("FW302",)))) == ["FW302"]


def test_guidance_that_goes_with_its_tool_is_quiet() -> None:
    """Bound guidance, guidance with a condition, the word outside backticks, tools that nobody knows."""
    prompt = clerk("Run `make test`; give a refund if you must; `grep` is your friend.")
    prompt.tools(lambda: ToolProviderResult([tool("run")], known_names=["run", "refund"]))
    prompt.section("tool:run", "Use `run`.", order=100, requires_tools=["run"])
    prompt.section("tool:refund", "Use `refund`.", order=101, requires_tools=["refund"])
    prompt.section("tool:files", "Read.", order=102, when=lambda _: True)
    assert found(prompt, "FW302") == []


def test_a_required_tool_that_nobody_has_is_found() -> None:
    """In a section and in a context, with the nearest tool."""
    prompt = clerk("Once.", requires_tools=["refund"])
    prompt.context("c", "x", order=1, requires_tools=["srch"])
    prompt.tools([tool("refund_order"), tool("search")])
    findings = found(prompt, "FW303")
    assert [finding.name for finding in findings] == ["desk:text", "c"]
    assert 'did you mean "search"?' in findings[1].way_out


def test_a_required_tool_of_some_scope_is_quiet() -> None:
    """One scope that has it is enough; so is a provider that has not answered."""
    prompt = clerk("Once.", requires_tools=["refund"])
    prompt.scope("desk").tools([tool("refund")])
    assert found(prompt, "FW303") == []
    prompt = clerk("Once.", requires_tools=["refund"])
    prompt.tools(lambda: ToolProviderResult([]), when=lambda _: False)
    assert found(prompt, "FW303") == []


@pytest.mark.parametrize(
    ("name", "providers"),
    [
        ("orders.refund", "openai, deepseek, anthropic"),
        ("störung", "openai, deepseek, anthropic"),
        ("two words", "openai, deepseek, anthropic"),
        ("a" * 65, "openai, deepseek"),
    ],
)
def test_names_that_providers_refuse_are_found(name: str, providers: str) -> None:
    """Other characters, and more than a provider takes; told with those that refuse it."""
    prompt = clerk()
    prompt.owner("shop").tools([tool(name)])
    finding = only(prompt, "FW304")
    assert (finding.owner, finding.name) == ("shop", name)
    assert f"refused by {providers}: " in finding.message


def test_names_that_collide_are_found() -> None:
    """A dash and an underscore; the same first 64 characters."""
    prompt = clerk()
    prompt.tools([tool("find-order"), tool("find_order"), tool("a" * 64 + "b"), tool("a" * 64 + "c")])
    assert [finding.name for finding in found(prompt, "FW305")] == ["a" * 64 + "c", "find_order"]


def test_a_tool_that_is_sent_twice_is_found() -> None:
    """With both owners."""
    prompt = clerk()
    prompt.owner("web").tools([tool("search")])
    prompt.owner("shop").tools([tool("search")])
    finding = only(prompt, "FW306")
    assert finding.owner == "shop"
    assert 'tool "search" is sent twice: of web' in finding.message


def test_plain_names_are_quiet() -> None:
    """Names of letters, digits, dashes and underscores; a tool that shadows its namesake is sent once."""
    prompt = clerk()
    prompt.tools([tool("mcp__orders__find-all"), tool("find_order"), tool("findOrder"), tool("a" * 64)])
    assert [each for code in ("FW304", "FW305", "FW306") for each in found(prompt, code)] == []
    tools = ToolRegistry(clerk())

    def search() -> str:
        """Search."""
        return ""

    prompt = clerk()
    tools = ToolRegistry(prompt)
    tools.register(search)
    tools.at(prompt.scope("team")).register(search)
    assert found(prompt, "FW306") == []
