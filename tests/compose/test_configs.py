"""Configs of plugins: checked by the plugin's own class, each fault at its path in the file."""

from __future__ import annotations

import pytest
from tests.compose.support import Folder, places, text_of

MODELS = """
from dataclasses import dataclass
from typing import Literal
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from foreword import SystemPrompt
from foreword.kernel.plugins import plugin

class Server(BaseModel):
    host: str
    port: int = Field(default=80, ge=1)

class Config(BaseModel):
    currency: Literal["EUR", "USD"] = "EUR"
    servers: list[Server] = []
    main: Server | None = None
    by_name: dict[str, Server] = {}
    renamed: int = Field(default=0, alias="re-named")
    chosen: int = Field(default=0, validation_alias=AliasChoices("one", AliasPath("two", 0)))

class Forbidding(Config):
    model_config = ConfigDict(extra="forbid")

class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    known: int = 0

class Allowing(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int = 0

@dataclass
class Plain:
    limit: int
    words: tuple = ()

def using(model):
    @plugin(name="it", config=model)
    def it(config: model, prompt: SystemPrompt) -> None:
        prompt.section("it", repr(config), order=20, verbatim=True)
    return it

full, forbidding, ignoring, allowing, plain = map(using, (Config, Forbidding, Ignoring, Allowing, Plain))

def none() -> None: ...
def free(config: dict, prompt: SystemPrompt) -> None:
    prompt.section("it", repr(config), order=20, verbatim=True)
"""


@pytest.fixture(autouse=True)
def models(folder: Folder) -> None:
    folder.write("models.py", MODELS)


@pytest.mark.anyio
@pytest.mark.parametrize("use", ["full", "forbidding"])
async def test_all_faults_with_their_paths(folder: Folder, use: str) -> None:
    """Every fault of a config is told, at the line and path of the value, together with what is wrong elsewhere."""
    faults = await folder.open_faults(
        f"""
        nonsense: 1
        plugins:
          - id: a
            use: "models:{use}"
            config:
              currency: GBP
              servers:
                - {{host: x, port: 0}}
                - {{prot: 5}}
              main: {{host: [], hots: y}}
              by_name:
                left: {{host: 5}}
              currencie: EUR
        """
    )
    assert places(faults) == [
        (2, "nonsense"),
        (7, "plugins[0].config.currency"),
        (9, "plugins[0].config.servers[0].port"),
        (10, "plugins[0].config.servers[1].host"),
        (10, "plugins[0].config.servers[1].prot"),
        (11, "plugins[0].config.main.host"),
        (11, "plugins[0].config.main.hots"),
        (13, "plugins[0].config.by_name.left.host"),
        (14, "plugins[0].config.currencie"),
    ]
    assert 'did you mean "currency"?' in faults[-1].message
    assert ('extra="ignore"' in faults[-1].message) == (use == "full")


@pytest.mark.anyio
async def test_every_spelling_of_a_field_is_known(folder: Folder) -> None:
    """Aliases of a pydantic model are keys like others, and a model that takes or ignores any key is left to it."""
    for use, config in {
        "full": "{re-named: 1, one: 2, main: {host: x}}",
        "ignoring": "{known: 1, unknown: 2}",
        "allowing": "{known: 1, unknown: 2}",
    }.items():
        async with folder.open(f"plugins: [{{id: a, use: 'models:{use}', config: {config}}}]") as app:
            assert "=1" in await text_of(app)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("use", "config", "path", "words"),
    [
        ("none", "{a: 1}", "plugins[0].config", "takes no config"),
        ("plain", "{}", "plugins[0].config", "limit"),
        ("plain", "{limit: 1, limitt: 2}", "plugins[0].config", "limitt"),
        ("full", "{servers: {}}", "plugins[0].config.servers", "list"),
        ("full", "{main: x}", "plugins[0].config.main", "Server"),
    ],
)
async def test_one_fault(folder: Folder, use: str, config: str, path: str, words: str) -> None:
    """A config that does not fit its class, whatever that is, is one fault."""
    (fault,) = await folder.open_faults(f"plugins: [{{id: a, use: 'models:{use}', config: {config}}}]")
    assert fault.path == path
    assert words in fault.message


@pytest.mark.anyio
@pytest.mark.parametrize(("config", "shown"), [("", "{}"), (", config: ", "{}"), (", config: {a: [1]}", "{'a': [1]}")])
async def test_plain_dicts(folder: Folder, config: str, shown: str) -> None:
    """A plugin that takes a dict gets a plain one, which it may change."""
    async with folder.open(f"plugins: [{{id: a, use: 'models:free'{config}}}]") as app:
        assert shown in await text_of(app)


@pytest.mark.anyio
async def test_a_faulty_config_is_not_checked_further(folder: Folder) -> None:
    """Where the file itself is at fault in a config, the plugin's class is not asked about it."""
    (fault,) = await folder.open_faults("plugins: [{id: a, use: 'models:plain', config: {limit: '${x}'}}]")
    assert fault.path == "plugins[0].config.limit"
