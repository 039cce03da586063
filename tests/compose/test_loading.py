"""Opening a deployment: its plugins, its changes, its agents; and what stops it."""

from __future__ import annotations

import time
from itertools import permutations
from typing import Any

import pytest
from tests.compose.support import Folder, places, text_of, tools_of

from foreword import InactiveContextError
from foreword.compose import App, DeploymentError, open_deployment, read_deployment

QUIET = "system_prompt: {include_harness_identity: false, persona: 'You work for {{company}}.'}\n"
EXAMPLE = (
    QUIET
    + """\
variables: {company: Acme}
plugins:
  - {id: billing, use: "plugs:billing", config: {currency: USD}}
  - {id: tools, use: "plugs:tools"}
sections:
  growth:upsell: {enabled: false, why: legal}
  acme-billing:rules: {order: 120}
"""
)


@pytest.fixture(autouse=True)
def plugins(folder: Folder) -> None:
    folder.plugins()


@pytest.mark.anyio
async def test_the_prompt(folder: Folder) -> None:
    """What the file says, and what its plugins contribute, is one prompt."""
    async with folder.open(EXAMPLE) as app:
        assert await text_of(app) == "You work for Acme.\n\nCharge once.\n\nQuote prices in USD."
        assert await tools_of(app) == ["charge", "mcp__orders__get", "mcp__orders__list", "refund"]
        assert app.warnings == ()
        assert app.deployment.variables == {"company": "Acme"}


@pytest.mark.anyio
async def test_toml(folder: Folder) -> None:
    """TOML opens alike."""
    file = folder.write(
        "foreword.toml",
        """
        foreword = 1
        plugins = [{id = "a", use = "plugs:billing"}]
        [system_prompt]
        include_harness_identity = false
        """,
    )
    async with open_deployment(file) as app:
        assert (await text_of(app)).startswith("Quote prices in EUR.")


@pytest.mark.anyio
async def test_the_identity(folder: Folder) -> None:
    """Told nothing, a deployment has the harness's identity; it can have another, or none."""
    async with folder.open("") as app:
        assert await text_of(app) == "You are an AI agent powered by DeepSeek Harness."
    async with folder.open("system_prompt: {identity: I am.}") as app:
        assert await text_of(app) == "I am."


@pytest.mark.anyio
async def test_sources(folder: Folder) -> None:
    """What the file contributes names its line; a text from a file names that."""
    folder.write("personas/acme.md", "Line one.\nYou work for {{company}}.\n")
    text = EXAMPLE.replace("'You work for {{company}}.'", "{file: personas/acme.md}")
    async with folder.open(text + "agents:\n  a: {persona: Shadow, tools: {deny: [refund]}}\n") as app:
        rendering = await app.prompt.render()
        spans = {span.variable or span.section: span for span in rendering.spans}
        assert str(spans["deployment:persona"].source) == "personas/acme.md:2"
        assert (spans["company"].origin.owner, str(spans["company"].origin.source)) == ("deployment", "foreword.yaml:3")
        told = "\n".join(map(str, rendering.trace.events))
        assert 'override "growth:upsell" of deployment (foreword.yaml:8): legal' in told
        rendering = await app.agents["a"].render()
        assert str(rendering.spans[0].origin) == "deployment in scope a (foreword.yaml:11)"
        told = "\n".join(map(str, rendering.trace.events))
        assert 'listener "agents.a.tools" of deployment in scope a (foreword.yaml:11)' in told


@pytest.mark.anyio
async def test_an_overriding_text(folder: Folder) -> None:
    """Another text is a template; from a file it names that file."""
    folder.write("rules.md", "Prices are in {{currency}}, always.\n")
    async with folder.open(EXAMPLE.replace("{order: 120}", "{file: rules.md}")) as app:
        rendering = await app.prompt.render()
        assert "Prices are in USD, always." in rendering.text
        assert "rules.md:1" in {str(span.source) for span in rendering.spans}


@pytest.mark.anyio
async def test_statuses(folder: Folder) -> None:
    """Each plugin of the file has a status, in its order: state, and what it contributed, with places."""
    text = "plugins:\n  - {id: b, use: 'plugs:billing'}\n  - {id: off, use: 'no:x', disabled: true}\n  - {id: l, use: 'plugs:legal'}\n"
    async with folder.open(text) as app:
        billing, off, legal = app.plugins
        assert (billing.id, billing.use, billing.name, billing.state) == (
            "b",
            "plugs:billing",
            "acme-billing",
            "active",
        )
        assert [(ref.kind, ref.name) for ref in billing.contributions] == [
            ("variable", "currency"),
            ("section", "acme-billing:rules"),
            ("section", "growth:upsell"),
        ]
        assert all(ref.source is not None and "plugs.py:" in ref.source for ref in billing.contributions)
        assert (off.id, off.state, off.contributions) == ("off", "disabled", ())
        assert [ref.kind for ref in legal.contributions] == ["section", "protection"]
        assert legal.version is None


@pytest.mark.anyio
async def test_nothing_is_left(folder: Folder) -> None:
    """When a deployment is closed, its views are, too, and no fiber is left."""
    async with folder.open(EXAMPLE + "agents: {a: {persona: x}}\n") as app:
        root, prompt, view = app.ctx.root, app.prompt, app.agents["a"]
        assert isinstance(app, App)
    for each in (prompt, view):
        with pytest.raises(InactiveContextError):
            each.section("late", "x", order=1)
    assert not [fiber for fiber in root.fibers if fiber.parent is not None]


# -- order -------------------------------------------------------------------------------------------------------------

CHAIN = """
from foreword import SystemPrompt
from foreword.kernel.context import Context
class One: ...
class Two: ...
def first(ctx: Context) -> None:
    ctx.provide(One())
async def second(ctx: Context, one: One) -> None:
    ctx.provide(Two())
def third(prompt: SystemPrompt, two: Two) -> None:
    prompt.section("third", "There.", order=20)
"""


@pytest.mark.anyio
@pytest.mark.parametrize("order", list(permutations(["first", "second", "third"])), ids="-".join)
async def test_order_does_not_matter(folder: Folder, order: tuple[str, ...]) -> None:
    """Plugins that need each other may stand in any order."""
    folder.write("chain.py", CHAIN)
    entries = "".join(f"  - {{id: {name}, use: 'chain:{name}'}}\n" for name in order)
    async with folder.open(f"{QUIET}variables: {{company: Acme}}\nplugins:\n{entries}") as app:
        assert await text_of(app) == "You work for Acme.\n\nThere."
        assert {each.state for each in app.plugins} == {"active"}


@pytest.mark.anyio
async def test_ties_follow_the_file(folder: Folder) -> None:
    """Equal orders are in the order of the file, however long plugins take to load."""
    folder.write(
        "ties.py",
        """
        import anyio
        from foreword import SystemPrompt
        async def slow(prompt: SystemPrompt) -> None:
            await anyio.sleep(0.05)
            prompt.section("slow", "Slow.", order=20)
        def fast(prompt: SystemPrompt) -> None:
            prompt.section("fast", "Fast.", order=20)
        """,
    )
    text = "system_prompt: {include_harness_identity: false}\nplugins: [{id: a, use: 'ties:slow'}, {id: b, use: 'ties:fast'}]"
    async with folder.open(text) as app:
        assert await text_of(app) == "Slow.\n\nFast."


# -- agents ------------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_agents(folder: Folder) -> None:
    """An agent is a scope: its persona stands in the place of the common one, and nobody else sees it."""
    async with folder.open(EXAMPLE + "agents: {support: , research: {persona: 'Research for {{company}}.'}}\n") as app:
        assert list(app.agents) == ["support", "research"]
        assert (await text_of(app, "support")) == (await text_of(app))
        assert (await text_of(app, "research")).startswith("Research for Acme.\n\n")
        assert (await text_of(app)).startswith("You work for Acme.")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tools", "left"),
    [
        ("{allow: [refund]}", ["refund"]),
        ("{allow: []}", []),
        ("{deny: [refund, charge]}", ["mcp__orders__get", "mcp__orders__list"]),
        ("{allow: ['mcp__orders__*']}", ["mcp__orders__get", "mcp__orders__list"]),
        ("{allow: ['*'], deny: ['mcp__*__l?st']}", ["charge", "mcp__orders__get", "refund"]),
        ("{allow: [refund, charge], deny: [charge]}", ["refund"]),
        ("{allow: [], deny: []}", []),
    ],
)
async def test_tools_of_an_agent(folder: Folder, tools: str, left: list[str]) -> None:
    """An agent has the tools that its lists admit; what needs another goes with it; others keep theirs."""
    async with folder.open(EXAMPLE + f"agents: {{a: {{tools: {tools}}}, b: }}\n") as app:
        assert await tools_of(app, "a") == left
        assert ("Charge once." in await text_of(app, "a")) == ("charge" in left)
        assert len(await tools_of(app, "b")) == len(await tools_of(app)) == 4


@pytest.mark.anyio
async def test_names_of_tools(folder: Folder) -> None:
    """A name that no tool bears is a fault with the nearest one; a pattern that matches nothing is a warning."""
    agents = "agents:\n  a:\n    tools:\n      allow: [refnd, 'x*', refund]\n      deny: ['mcp__mail__*', chrge]\n"
    faults = await folder.open_faults(EXAMPLE + agents)
    assert places(faults) == [(13, "agents.a.tools.allow[0]"), (14, "agents.a.tools.deny[1]")]
    assert 'did you mean "refund"?' in faults[0].message
    async with folder.open(EXAMPLE + agents.replace("refnd, ", "").replace(", chrge", "")) as app:
        assert places(app.warnings) == [(14, "agents.a.tools.deny[0]"), (13, "agents.a.tools.allow[0]")]
        assert "matches no tool" in app.warnings[0].message


@pytest.mark.anyio
async def test_a_change_of_what_nobody_contributes(folder: Folder) -> None:
    """A misspelt name under ``sections`` would leave in what was to go: it is a warning with the nearest name."""
    misspelt = EXAMPLE.replace("growth:upsell", "acme-billing:rulse")
    async with folder.open(misspelt) as app:
        (warning,) = app.warnings
        assert places(app.warnings) == [(8, "sections.acme-billing:rulse")]
        assert "changes nothing" in warning.message
        assert 'did you mean "acme-billing:rules"?' in warning.message
    changes = "sections:\n  deployment:persona: {text: Hi.}\n  b:late: {enabled: false}\n  b:now: {enabled: false}\n"
    folder.write(
        "bare.py",
        """
        from foreword import SystemPrompt
        def bare(prompt: SystemPrompt) -> None:
            prompt.section("b:late", "Late.", order=1, when=lambda context: False)
            prompt.context("b:now", "Now.", order=1)
    """,
    )
    async with folder.open(f"plugins: [{{id: b, use: 'bare:bare'}}]\n{changes}") as app:
        assert app.warnings == ()


LATE_TOOLS = """
from foreword import AssembleContext, ContextKey, SystemPrompt, ToolSchema
TENANT = ContextKey("tenant", str)
def late(prompt: SystemPrompt) -> None:
    prompt.tools(lambda: [ToolSchema("bash", "", {})])
def never(prompt: SystemPrompt) -> None:
    @prompt.tools
    def by_tenant(context: AssembleContext) -> list[ToolSchema]:
        return [ToolSchema(context[TENANT], "", {})]
def adding(prompt: SystemPrompt) -> None:
    @prompt.on_assemble
    async def add(assembly, context, call_next):
        assembly.tools = [*assembly.tools, ToolSchema("extra", "", {})]
        seen.append([tool.name for tool in assembly.tools])
        return await call_next()
seen = []
"""


@pytest.mark.anyio
async def test_tools_that_providers_give(folder: Folder) -> None:
    """Providers are asked which tools they have; where one does not answer, an unknown name is only a warning."""
    folder.write("late.py", LATE_TOOLS)
    text = "plugins: [{id: a, use: 'late:late'}%s]\nagents: {a: {tools: {allow: [bash, bsah]}}}\n"
    (fault,) = await folder.open_faults(text % "")
    assert 'there is no tool "bsah"; did you mean "bash"?' in fault.message
    async with folder.open(text % ", {id: b, use: 'late:never'}") as app:
        assert ["cannot be told" in each.message for each in app.warnings] == [True]


@pytest.mark.anyio
async def test_masks_and_other_listeners(folder: Folder) -> None:
    """Other listeners see no masked tool, and what they bring in is masked, too."""
    folder.write("late.py", LATE_TOOLS)
    text = (
        "plugins: [{id: a, use: 'late:adding'}, {id: t, use: 'plugs:tools'}]\nagents: {a: {tools: {allow: [refund]}}}\n"
    )
    async with folder.open(text) as app:
        import late  # type: ignore[import-not-found]

        late.seen.clear()
        assert await tools_of(app, "a") == ["refund"]
        assert late.seen == [["refund", "extra"]]
        assert "extra" in await tools_of(app)


@pytest.mark.anyio
async def test_a_protected_persona(folder: Folder) -> None:
    """An agent's persona that a plugin's protection forbids is a fault at its line."""
    folder.write(
        "strict.py",
        "from foreword import SystemPrompt\ndef strict(prompt: SystemPrompt) -> None:\n"
        "    prompt.protect(sections=['deployment:persona'])\n",
    )
    (fault,) = await folder.open_faults("plugins: [{id: a, use: 'strict:strict'}]\nagents:\n  a: {persona: Mine.}\n")
    assert (fault.line, fault.path) == (4, "agents.a.persona")
    assert "reserves for every scope" in fault.message


# -- what stops it -----------------------------------------------------------------------------------------------------

TROUBLE = """
import anyio
from foreword import SystemPrompt
from foreword.kernel.context import Context
class Mail: ...
class Post: ...
def fails(prompt: SystemPrompt) -> None:
    prompt.section("half", "Half.", order=20)
    raise ConnectionError("no route")
async def hangs() -> None:
    await anyio.sleep(60)
def waits(mail: Mail, post: Post) -> None: ...
def parent(ctx: Context) -> None:
    ctx.mount(waits)
def twice(prompt: SystemPrompt) -> None:
    prompt.variable("company", "Other")
def gives() -> int:
    return 5
def failing_undo(ctx: Context) -> None:
    ctx.defer(lambda: 1 / 0)
def above_failing_undo(ctx: Context) -> None:
    ctx.mount(failing_undo)
def loop_a(ctx: Context, mail: Mail) -> None:
    ctx.provide(Post())
def loop_b(ctx: Context, post: Post) -> None:
    ctx.provide(Mail())
"""


@pytest.mark.anyio
async def test_all_that_fail_or_wait(folder: Folder) -> None:
    """Every plugin that fails, hangs or waits is named at its line, with what it waits for; nothing is left loaded."""
    folder.write("trouble.py", TROUBLE)
    start = time.monotonic()
    faults = await folder.open_faults(
        """
        variables: {company: Acme}
        plugins:
          - {id: a, use: "trouble:fails"}
          - {id: b, use: "trouble:waits"}
          - {id: c, use: "plugs:billing"}
          - {id: d, use: "trouble:hangs"}
          - {id: e, use: "trouble:parent"}
          - {id: f, use: "trouble:twice"}
          - {id: g, use: "trouble:gives"}
        """,
        setup_timeout=0.2,
    )
    assert time.monotonic() - start < 20
    assert places(faults) == [
        (4, "plugins[0]"),
        (5, "plugins[1]"),
        *[(at, f"plugins[{at - 4}]") for at in range(7, 11)],
    ]
    failing, waiting, hanging, mounted, duplicate, giving = [fault.message for fault in faults]
    assert failing.startswith(
        "plugin fails failed in set-up and was rolled back: ConnectionError: no route (raised at "
    )
    assert failing.endswith("trouble.py:8)")
    assert waiting.startswith("plugin waits still waits for Mail, Post, which nobody provides")
    assert "hangs in set-up: it was cancelled after 0.2 s" in hanging
    assert mounted.startswith("plugin waits, which it mounted: plugin waits still waits for Mail, Post")
    assert 'variable "company" of deployment (foreword.yaml:2)' in duplicate
    assert "int; give nothing, or yield once" in giving


@pytest.mark.anyio
async def test_plugins_that_wait_for_each_other(folder: Folder) -> None:
    """Two plugins that wait for each other are both named, and told that they may do so; one alone is not."""
    folder.write("trouble.py", TROUBLE)
    faults = await folder.open_faults("plugins: [{id: a, use: 'trouble:loop_a'}, {id: b, use: 'trouble:loop_b'}]")
    assert ["Mail" in faults[0].message, "Post" in faults[1].message] == [True, True]
    assert all(fault.message.endswith("provides it: then they wait for each other") for fault in faults)
    (alone,) = await folder.open_faults("plugins: [{id: a, use: 'trouble:loop_a'}]")
    assert alone.message.endswith("add the plugin that does, or take this one out")


@pytest.mark.anyio
async def test_code_and_file_faults_at_once(folder: Folder) -> None:
    """What the file and what its code are at fault for is told together, in the order of the file."""
    faults = await folder.open_faults(
        """
        variables: {Bad: x}
        plugins:
          - {id: a, use: "plugs:biling"}
          - {id: a, use: "plugs:billing", config: {limit: many, key: "${env:NO}"}}
          - {id: c, use: "plugs:billing", config: {limitt: 3}, grants: []}
          - {id: d, use: no-such-plugin}
        agents: {x: {model: y}}
        sections: {z: {}}
        """
    )
    assert places(faults) == [
        (2, "variables.Bad"),
        (4, "plugins[0].use"),
        (5, "plugins[1].id"),
        (5, "plugins[1].config.key"),
        (6, "plugins[2].config.limitt"),
        (6, "plugins[2].grants"),
        (7, "plugins[3].use"),
        (8, "agents.x.model"),
        (9, "sections.z"),
    ]


@pytest.mark.anyio
async def test_overrides_that_cannot_be(folder: Folder) -> None:
    """A change of a protected section is a fault that names the protection; a name that nobody bears is none."""
    text = "plugins: [{id: a, use: 'plugs:legal'}]\nsections:\n  nobody: {enabled: false}\n  legal:notice: {enabled: false}\n"
    (fault,) = await folder.open_faults(text)
    assert (fault.line, fault.path) == (5, "sections.legal:notice")
    assert "protected by" in fault.message
    assert "plugs.py:" in fault.message


@pytest.mark.anyio
async def test_what_the_body_raises(folder: Folder) -> None:
    """What happens while a deployment is open reaches the caller as it is, and everything is unloaded."""
    with pytest.raises(ZeroDivisionError):
        async with folder.open(EXAMPLE) as app:
            raise ZeroDivisionError
    assert not app.prompt.active


@pytest.mark.anyio
async def test_failing_undo(folder: Folder) -> None:
    """A plugin that fails to go is told when the deployment is closed, by its id and its line; others are not."""
    folder.write("trouble.py", TROUBLE)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with folder.open(
            "plugins:\n- {id: a, use: 'trouble:failing_undo'}\n- {id: b, use: 'plugs:billing'}\n"
            "- {id: c, use: 'trouble:above_failing_undo'}\n"
        ):
            pass
    assert caught.group_contains(ZeroDivisionError)
    notes = caught.value.__notes__
    assert [note.partition(" (")[0] for note in notes] == ["plugin a", "plugin c"]
    assert notes[0].endswith("foreword.yaml:3) failed in teardown")


@pytest.mark.anyio
async def test_failing_undo_after_an_error(folder: Folder) -> None:
    """On the way out on an error, which comes first, the plugin that fails to go is named beside it."""
    folder.write("trouble.py", TROUBLE)
    with pytest.raises(LookupError) as caught:
        async with folder.open("plugins: [{id: a, use: 'trouble:failing_undo'}]"):
            raise LookupError
    assert caught.value.__notes__[-1].startswith("plugin a (")


@pytest.mark.anyio
async def test_a_file_that_is_not_there(folder: Folder) -> None:
    """A file that is not there is a fault, not a FileNotFoundError."""
    with pytest.raises(DeploymentError, match="is not there"):
        async with open_deployment(folder.path / "foreword.yaml"):
            pass


@pytest.mark.anyio
@pytest.mark.parametrize("file", [None, 5, b"foreword.yaml"], ids=repr)
async def test_a_file_that_is_no_path(file: Any) -> None:
    """What is no path is told so, by both ways to read a deployment."""
    with pytest.raises(TypeError, match=r"the deployment file is .*; give its path"):
        async with open_deployment(file):
            pass
    with pytest.raises(TypeError, match=r"the deployment file is .*; give its path"):
        read_deployment(file)


@pytest.mark.anyio
async def test_opening_twice(folder: Folder) -> None:
    """The same file can be open twice; the two share no prompt."""
    file = folder.deployment(EXAMPLE)
    async with open_deployment(file) as one, open_deployment(file) as two:
        one.ctx.require(type(one.prompt)).section("only", "Only here.", order=99)
        assert "Only here." in await text_of(one)
        assert "Only here." not in await text_of(two)
