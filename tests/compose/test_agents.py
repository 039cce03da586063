"""Agents of a deployment that run: what the file says of them, where they log, who serves their models."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.compose.support import Folder
from tests.support import anthropic_events
from tests.support.recording_server import RecordingServer, said

from foreword import (
    ApiKeyError,
    DeploymentError,
    InactiveContextError,
    ModelAdapters,
    SystemPrompt,
    UnknownProviderError,
    open_log,
)
from foreword.compose import App
from foreword.session import Note, RequestAttempted, rebuild, verify
from foreword.testing import MemoryStore, ScriptedModel, call_tools
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio

DESK = '''
from foreword import SystemPrompt, ToolRegistry, ToolSchema, plugin

@plugin(name="desk")
def desk(prompt: SystemPrompt, tools: ToolRegistry) -> None:
    @tools.register
    def lookup(order: int) -> str:
        """Look an order up."""
        return f"{order} is late"

    @tools.register
    def refund(order: int) -> str:
        """Refund an order."""
        raise AssertionError("a masked tool was called")

    prompt.tools([ToolSchema("fax", "Send a fax.", {"type": "object"})])
    prompt.section("desk:refunds", "Refund once.", order=30, requires_tools=["refund"])
'''
TEXT = """
system_prompt: {include_harness_identity: false, persona: You are a clerk.}
plugins: [{id: desk, use: "desk:desk"}]
agents:
  support:
    model: {use: "scripted:small", settings: {temperature: 0.5}}
    persona: You are {{model}}.
    tools: {deny: [refund, fax]}
    labels: {tenant: acme, tier: gold}
  other: {model: "scripted:small"}
  silent: {}
"""


@pytest.fixture(autouse=True)
def desk(folder: Folder) -> None:
    folder.write("desk.py", DESK)


def scripted(app: App, *steps: Any) -> ScriptedModel:
    """A scripted model that serves the deployment's agents."""
    model = ScriptedModel(steps)
    app.ctx.require(ModelAdapters).register(model)
    return model


# -- what the file says ------------------------------------------------------------------------------------------------


async def test_an_agent_of_the_file_runs(folder: Folder) -> None:
    """It asks the file's model with its settings, under its persona; labels of the file and of the call go together."""
    async with folder.open(TEXT, log=MemoryStore()) as app:
        model = scripted(app, "Hello.")
        agent = await app.agent("support", labels={"tier": "silver", "ticket": "4711"}, cwd="/srv")
        assert (await agent.run("Hi")).text == "Hello."
        sent = json.loads(model.requests[0])
        assert sent["system"] == "You are small."
        assert sent["config"] == {"provider": "scripted", "model": "small", "settings": {"temperature": 0.5}}
        assert agent.session.labels == {"tenant": "acme", "tier": "silver", "ticket": "4711"}
        assert agent.session.cwd == "/srv"


async def test_it_is_told_what_its_view_shows(folder: Folder) -> None:
    """What a running agent is asked with is what its view renders to, and its persona is explained by its line."""
    async with folder.open(TEXT, log=MemoryStore()) as app:
        model = scripted(app, "Hello.", "Hello.")
        shown = await app.agents["other"].render()
        other, support = await app.agent("other"), await app.agent("support")
        await other.run("Hi")
        sent = json.loads(model.requests[0])
        assert (sent["system"], [tool["name"] for tool in sent["tools"]]) == (
            shown.text,
            [tool.name for tool in shown.tools],
        )
        await support.run("Hi")
        explained = (await rebuild(app.log, f"{support.id}@1")).explanation
        assert explained is not None
        first = explained.spans[0]
        assert (first.owner, str(first.origin.source)) == ("deployment", "foreword.yaml:7")


async def test_a_masked_tool_is_neither_seen_nor_called(folder: Folder) -> None:
    """The file's mask counts for what is shown and what is called, of tools in the registry and of others."""
    async with folder.open(TEXT, log=MemoryStore()) as app:
        model = scripted(app, call_tools(refund={"order": 1}, fax={}, lookup={"order": 1}), "Done.")
        agent = await app.agent("support")
        await agent.run("Refund it.")
        assert [tool["name"] for tool in json.loads(model.requests[0])["tools"]] == ["lookup"]
        answers = [
            message["content"] for message in json.loads(model.requests[1])["messages"] if message["role"] == "tool"
        ]
        assert ["there is no tool" in answer for answer in answers] == [True, True, False]
        for scope in (agent, app.agents["support"].key):
            assert (await app.tools.call("refund", {"order": 1}, scope=scope)).code == "UNKNOWN_TOOL"
            assert app.tools.get("refund", scope) is None
            assert not app.tools.admits("fax", scope)
        assert app.tools.get("refund", app.agents["other"].key) is not None


async def test_children_inherit_neither_persona_nor_mask(folder: Folder) -> None:
    """What the file says of an agent is the agent's own; a child stands beside it."""
    async with folder.open(TEXT, log=MemoryStore()) as app:
        model = scripted(app, "Hello.")
        child = await (await app.agent("support")).spawn("helper")
        await child.run("Hi")
        sent = json.loads(model.requests[0])
        assert sent["system"] == "You are a clerk.\n\nRefund once."
        assert [tool["name"] for tool in sent["tools"]] == ["fax", "lookup", "refund"]


async def test_many_at_a_time(folder: Folder) -> None:
    """Any number of agents of one entry run, each with its session, its values and its set-up."""
    async with folder.open(TEXT, log=MemoryStore()) as app:
        model = scripted(app, "One.", "Two.")

        def setup(agent: Any) -> None:
            agent.ctx.require(SystemPrompt).section("own", "Be brief.", order=40)

        one, two = await app.agent("other"), await app.agent("other", setup=setup)
        assert one.id != two.id
        await one.run("Hi")
        await two.run("Hi")
        assert [json.loads(each)["system"].count("Be brief.") for each in model.requests] == [0, 1]


async def test_an_agent_goes_on(folder: Folder) -> None:
    """A session is taken up again by its id, or as the last one; labels are those that it has."""
    async with folder.open(TEXT, log=f"sqlite:{folder.path / 'a.db'}") as app:
        model = scripted(app, "One.", "Two.")
        agent = await app.agent("support")
        await agent.run("Hi")
        await agent.dispose()
        again = await app.agent("support", "last")
        assert (again.id, again.session.labels) == (agent.id, {"tenant": "acme", "tier": "gold"})
        await again.run("More")
        assert len(json.loads(model.requests[1])["messages"]) == 3
        await again.dispose()
        with pytest.raises(TypeError, match="given to a new session only"):
            await app.agent("support", agent.id, labels={"a": "b"})


async def test_an_agent_that_is_not_in_the_file(folder: Folder) -> None:
    """The error names the file and the nearest agent."""
    async with folder.open(TEXT, log=MemoryStore()) as app:
        with pytest.raises(DeploymentError, match='has no agent "supportt"; did you mean "support"'):
            await app.agent("supportt")
        with pytest.raises(DeploymentError, match='has no agent "3"; known agents: other'):
            await app.agent(3)  # type: ignore[arg-type]
    async with folder.open("", log=MemoryStore()) as app:
        with pytest.raises(DeploymentError, match="under the key agents"):
            await app.agent("support")


# -- the log -----------------------------------------------------------------------------------------------------------


async def test_the_log_is_opened_when_it_is_used(folder: Folder, tmp_path: Path) -> None:
    """A relative store stands beside the file; opening the deployment makes nothing, closing it closes the log."""
    async with folder.open(TEXT + "log: {store: 'sqlite:var/f.db'}\n") as app:
        assert not (folder.path / "var").exists()
        scripted(app, "Hello.")
        await (await app.agent("other")).run("Hi")
        log = app.log
        assert log is app.log
        assert (folder.path / "var" / "f.db").exists()
    for ask in (lambda: app.log, lambda: log.reader("last")):
        with pytest.raises(InactiveContextError):
            await ask()  # type: ignore[misc]
    async with open_log(f"sqlite:{folder.path / 'var' / 'f.db'}", read_only=True) as read:
        assert len(await read.sessions()) == 1


@pytest.mark.parametrize(
    ("written", "environment", "place"),
    [
        ("sqlite:f.db", {}, "folder/f.db"),
        ("${env:LOG:-sqlite:f.db}", {}, "folder/f.db"),
        ("${env:LOG:-sqlite:f.db}", {"LOG": ""}, "folder/f.db"),
        ("${env:LOG:-sqlite:f.db}", {"LOG": "sqlite:g.db"}, "here/g.db"),
        ("${env:LOG}", {"LOG": "sqlite:g.db"}, "here/g.db"),
        ("sqlite:${env:NAME}.db", {"NAME": "n"}, "folder/n.db"),
        (None, {"FOREWORD_LOG": "sqlite:g.db"}, "here/foreword.db"),
    ],
)
async def test_where_the_log_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str | None, environment: dict[str, str], place: str
) -> None:
    """What the file says starts at its folder, what the environment says at the current one."""
    here, folder = tmp_path / "here", Folder(tmp_path / "folder")
    here.mkdir()
    monkeypatch.chdir(here)
    text = "" if written is None else f"log: {{store: '{written}'}}\n"
    async with folder.open("agents: {a: {model: 'scripted:m'}}\n" + text, environment) as app:
        scripted(app, "Hello.")
        await (await app.agent("a")).run("Hi")
    assert [each for each in ("here", "folder") if (tmp_path / each).joinpath(place.partition("/")[2]).exists()] == [
        place.partition("/")[0]
    ]


async def test_a_log_that_is_given_stays_open(folder: Folder) -> None:
    """A log or a store that the caller opened is used, and left open."""
    async with MemoryStore() as store, open_log(store) as log:
        async with folder.open(TEXT, log=log) as app:
            scripted(app, "Hello.")
            assert app.log is log
            await (await app.agent("other")).run("Hi")
        async with folder.open(TEXT, log=store) as app:
            assert len(await app.log.sessions()) == 1
        assert len(await log.sessions()) == 1


async def test_what_is_stored_and_for_how_long(folder: Folder) -> None:
    """The file says how much of what is said is stored, and for how long: older contents are erased when an agent is
    made, at most once a day."""
    text = "log: {store: 'sqlite:log.db', content: masked, keep: 30d}\nagents: {a: {model: 'scripted:m'}}\n"
    store = MemoryStore()
    await log_note(store, days_ago=31)
    async with folder.open(text, log=store) as app:
        assert app.log.content == "masked"
        scripted(app, "Hello.")
        await app.agent("a")
        assert await store.search([b"long ago"]) == []
        await log_note(store, days_ago=29)
        await log_note(store, days_ago=31)
        await app.agent("a")
        assert len(await store.search([b"long ago"])) == 2
    async with folder.open(text, log=store) as app:
        scripted(app, "Hello.")
        await app.agent("a")
        assert len(await store.search([b"long ago"])) == 1
    async with open_log(store) as log:
        assert (await verify(log)).intact
        async with folder.open(text, log=log) as app:
            assert app.log.content == "full"  # a log that is given is its owner's to look after


async def log_note(store: MemoryStore, *, days_ago: int) -> None:
    then = time.time_ns() // 1_000_000 - days_ago * 86_400_000
    async with open_log(store, clock=lambda: then) as log:
        session = await log.create()
        session.append(Note("told", "long ago"))
        await session.close()


# -- models ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")  # the SDK leaves them to the garbage collector
async def test_a_model_of_openai(folder: Folder) -> None:
    """Its key and its address come from the environment; the key goes to the server, and nobody tells it."""
    with RecordingServer(said("Hello.")) as server:
        environment = {"OPENAI_API_KEY": "sk-secret-4711", "OPENAI_BASE_URL": server.url}
        async with folder.open("agents: {a: {model: 'openai:gpt-5'}}\n", environment, log=MemoryStore()) as app:
            agent = await app.agent("a")
            assert (await agent.run("Hi")).text == "Hello."
            assert app.secrets.hide("with sk-secret-4711") == "with ${env:OPENAI_API_KEY}"
            attempted = [each.event for each in agent.session.events if isinstance(each.event, RequestAttempted)]
            assert [each.body.adapter for each in attempted if each.body is not None] == ["openai"]
            await app.agent("a")  # served by the same adapter
        server.wait_for_no_connection()
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret-4711"


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_a_model_of_anthropic(folder: Folder) -> None:
    """So is one of Anthropic, by its own adapter."""
    with RecordingServer(anthropic_events.said("Hello.")) as server:
        environment = {"ANTHROPIC_API_KEY": "sk-secret-4711", "ANTHROPIC_BASE_URL": server.root}
        text = "agents: {a: {model: 'anthropic:claude-sonnet-4-5'}}\n"
        async with folder.open(text, environment, log=MemoryStore()) as app:
            assert (await (await app.agent("a")).run("Hi")).text == "Hello."
            assert app.secrets.hide("with sk-secret-4711") == "with ${env:ANTHROPIC_API_KEY}"
        server.wait_for_no_connection()
    assert server.requests[0].path == "/v1/messages"


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        ("anthropic:claude-sonnet-4-5", ApiKeyError, "set ANTHROPIC_API_KEY"),
        ("openai:gpt-5", ApiKeyError, "the API key for openai is missing; set OPENAI_API_KEY"),
        ("deepseek:deepseek-chat", ApiKeyError, "set DEEPSEEK_API_KEY"),
        ("opnai:gpt-5", UnknownProviderError, 'did you mean "openai"'),
    ],
)
async def test_a_model_that_cannot_be_asked(folder: Folder, model: str, error: type[Exception], words: str) -> None:
    """What is missing is told when the agent is made, and looked for where the caller says; showing needs none of it."""
    async with folder.open(f"agents: {{a: {{model: '{model}'}}}}\n", log=MemoryStore()) as app:
        assert await app.agents["a"].render()
        with pytest.raises(error, match=words):
            await app.agent("a")
        assert await app.log.sessions() == []


async def test_an_adapter_of_a_plugin(folder: Folder) -> None:
    """A plugin's adapter comes first, and serves any provider; then no key is needed."""
    folder.write(
        "models.py",
        "from foreword import ModelAdapters\nfrom foreword.testing import ScriptedModel\n"
        "def ours(models: ModelAdapters) -> None:\n"
        "    models.register(ScriptedModel(lambda request: request.config.model, name='openai'))\n",
    )
    text = "plugins: [{id: m, use: 'models:ours'}]\nagents: {a: {model: 'openai:gpt-5'}}\n"
    async with folder.open(text, log=MemoryStore()) as app:
        assert (await (await app.agent("a")).run("Hi")).text == "gpt-5"
        other = await app.agent("a", model=ModelConfig("openai", "gpt-6"))
        assert (await other.run("Hi")).text == "gpt-6"
