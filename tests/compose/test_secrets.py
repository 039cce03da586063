"""Secrets: what an expression means, and that the value shows nowhere."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compose.support import Folder, text_of

from foreword import AssemblyError, Event, Mode
from foreword.compose import DeploymentError, open_deployment
from foreword.compose.secrets import FromEnvironment, Secrets, parsed, plain, shown_value

SECRET = "sk-'live'\"0123456789\\abc\ndef-ghi-jkl-mno"  # quotes, a backslash and a line end: what reprs change
EVIDENCE = ("0123456789", "def-ghi", "sk-'live", "sk-\\'live", "live'\\\"")
ENVIRONMENT = {"KEY": SECRET, "HOST": "internal.example", "EMPTY": ""}


def clean(text: str) -> bool:
    """Whether a text shows nothing of the secret."""
    return not any(piece in text for piece in EVIDENCE)


def fail() -> None:
    """A plugin is to fail."""


FAIL = Event("test/fail", Mode.EMIT, fail)


# -- what expressions mean ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("${env:A}", "one"), ("${env:A:-two}", "one"), ("${env:NO:-two}", "two"), ("${env:EMPTY:-two}", "two"),
     ("${env:EMPTY}", ""), ("${env:NO:-}", ""), ("x${env:A}y${env:A}", "xoneyone"), ("${env:NO:-a:b-c$}", "a:b-c$"),
     ("$${env:A}", "${env:A}"), ("$$${env:A}", "$${env:A}"), ("$", "$"), ("$$", "$$"), ("a $x {y}", "a $x {y}"),
     ("${env:NO:-sqlite:var/x.db}", "sqlite:var/x.db"), ("${env:_a1}", "low")],
)  # fmt: skip
def test_expressions(text: str, value: str) -> None:
    """An expression stands for its variable, or its default where that is unset or empty; `$${` for a plain `${`."""
    parts, faults = parsed(text)
    assert not faults
    assert Secrets({"A": "one", "EMPTY": "", "_a1": "low"}).filled_in(text) == value
    assert all(isinstance(part, str | FromEnvironment) for part in parts)


@pytest.mark.parametrize("text", ["${", "${x}", "${env}", "${env:}", "${env:a b}", "${env:A", "${ENV:A}", "${env:A-x}"])
def test_what_is_no_expression(text: str) -> None:
    """Any other `${` is a fault with its place, which shows nothing of what follows."""
    _, faults = parsed(f"ab {text}")
    assert len(faults) == 1
    assert "at character 4" in faults[0]
    assert "a b" not in faults[0]


@given(st.text("$ {}env:A-x"))
def test_plain_text_can_always_be_written(text: str) -> None:
    """Any text can be written with `$${` for `${`, and is read as it was meant."""
    written = text.replace("${", "$${")
    assert parsed(written)[1] == ()
    assert plain(written) == text


@pytest.mark.parametrize(
    ("value", "shown"),
    [("${env:KEY}", "${env:KEY} (set)"), ("${env:NO:-dflt}", "${env:NO} (not set)"),
     ("https://${env:KEY}@${env:NO:-h}/", '"https://${env:KEY}@${env:NO}/" (KEY: set, NO: not set)'),
     ("$${x}", '"${x}"'), ("plain", '"plain"'), (5, "5"), (None, "null"), ({}, "{}"), (True, "true")],
)  # fmt: skip
def test_how_values_are_shown(value: object, shown: str) -> None:
    """Commands show the name and whether it is set; never the value, nor the default."""
    assert shown_value(value, {"KEY": SECRET}) == shown


# -- hiding ------------------------------------------------------------------------------------------------------------

_LONG = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=8, max_size=60)


@given(_LONG, st.text(max_size=20), st.text(max_size=20))
def test_a_value_shows_in_no_message(secret: str, before: str, after: str) -> None:
    """Whatever stands around it, a value is taken out, as it is and as Python and JSON quote it."""
    secrets = Secrets({"KEY": secret})
    secrets.filled_in("${env:KEY}")
    for form in (secret, repr(secret), json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr([secret])):
        hidden = secrets.hide(f"{before}{form}{after}")
        assert secret not in hidden.replace("${env:KEY}", "\0")


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=18, max_size=60), st.integers(17, 60))
def test_a_value_that_is_cut_short_is_hidden(secret: str, length: int) -> None:
    """A message that shows only the beginning of a value does not show that either."""
    secrets = Secrets({"KEY": secret})
    secrets.filled_in("${env:KEY}")
    shown = secret[: min(length, len(secret) - 1)]
    assert secret[:17] not in secrets.hide(f"bad value {shown}…")


def test_short_values_withhold_the_message() -> None:
    """A value too short to be taken out withholds the whole message, and says so."""
    secrets = Secrets({"PIN": "42"})
    secrets.filled_in(["${env:PIN}"])
    assert secrets.hide("no such pin: 42") == "(withheld, since it holds the value of ${env:PIN})"
    assert secrets.hide("no such pin") == "no such pin"


def test_names_are_not_withheld() -> None:
    """Of a name, a short value takes nothing away; a longer one is taken out as anywhere."""
    secrets = Secrets({"PIN": "42", "KEY": "sesame-and-more"})
    secrets.filled_in(["${env:PIN}", "${env:KEY}"])
    assert secrets.hide("rule:42", withhold=False) == "rule:42"
    assert secrets.hide("rule:sesame-and-more", withhold=False) == "rule:${env:KEY}"


def test_stripped_values_are_hidden() -> None:
    """Who strips a value, or takes one line of it, does not show it either."""
    secrets = Secrets({"A": " pw12\n", "B": "-----BEGIN-----\nMIIEpAIBAAKCAQEA\n"})
    secrets.filled_in("${env:A}${env:B}")
    assert secrets.hide("no pw12 and no MIIEpAIBAAKCAQEA") == "no ${env:A} and no ${env:B}"


def test_values_in_an_excerpt_are_hidden() -> None:
    """An error's excerpt of a line has a blank for each character that cannot be shown; a value is found there, too."""
    secrets = Secrets({"KEY": "one\x1btwo\x00"})
    secrets.filled_in("${env:KEY}")
    assert secrets.hide("in 'one two '") == "in '${env:KEY} '"


def test_only_what_was_given_is_hidden() -> None:
    """Variables that no plugin was given, defaults and empty values change no message."""
    secrets = Secrets({"OTHER": "other-value", "EMPTY": ""})
    secrets.filled_in({"a": "${env:NO:-default-value}", "b": ["${env:EMPTY}"]})
    assert secrets.hide("other-value default-value") == "other-value default-value"
    assert repr(secrets) == "<Secrets: EMPTY>"


# -- nowhere -----------------------------------------------------------------------------------------------------------

LEAKY = """
import anyio
from tests.compose.test_secrets import FAIL
from pydantic import BaseModel, SecretStr, field_validator
from foreword import SystemPrompt
from foreword.kernel.context import Context
from foreword.kernel.plugins import plugin

class Strict(BaseModel):
    key: int
    nested: dict[str, int] = {}

class Picky(BaseModel):
    key: str
    @field_validator("key")
    @classmethod
    def check(cls, value: str) -> str:
        raise ValueError(f"{value!r} is no key")

class Rude(BaseModel):
    key: str
    @field_validator("key")
    @classmethod
    def check(cls, value: str) -> str:
        raise RuntimeError(f"{value} is no key")

class Own:
    def __init__(self, key: str) -> None:
        raise TypeError(f"cannot use {key}")

class Fine(BaseModel):
    key: SecretStr

@plugin(config=Strict)
def strict(config: Strict) -> None: ...
@plugin(config=Picky)
def picky(config: Picky) -> None: ...
@plugin(config=Rude)
def rude(config: Rude) -> None: ...
@plugin(config=Own)
def own(config: Own) -> None: ...

@plugin(config=Fine)
def fine(config: Fine, prompt: SystemPrompt) -> None:
    prompt.section("fine", "Fine.", order=20)

def nothing() -> None: ...

def plain(config: dict) -> None:
    raise ConnectionError("cannot log in", config["key"]) from ValueError(config["key"])

async def later(config: dict) -> None:
    raise ConnectionError(f"cannot log in with {config!r}")

def deferred(config: dict, ctx: Context) -> None:
    def undo() -> None:
        raise ValueError(f"cannot log out with {config['key']}")
    ctx.defer(undo)

def generator(config: dict):
    try:
        raise KeyError(config["key"])
    except KeyError as error:
        error.add_note(f"with {config['key']}")
        raise RuntimeError("no luck")
    yield

async def agenerator(config: dict):
    raise ExceptionGroup("several", [ValueError(config["key"]), KeyError("other")])
    yield

def named(config: dict, prompt: SystemPrompt) -> None:
    prompt.section(config["key"], "x", order=float("nan"))

def child(config: dict, ctx: Context) -> None:
    def inner() -> None:
        raise ValueError(config["key"])
    ctx.mount(inner)

def teardown(config: dict):
    yield
    raise ValueError(f"cannot log out with {config['key']}")

class Quiet(Exception):
    def __str__(self) -> str:
        return "cannot log out with the key"

def quiet(config: dict):
    yield
    raise RuntimeError("cannot go") from Quiet(config["key"])

async def ateardown(config: dict):
    yield
    raise ValueError(f"cannot log out with {config['key']}")

def asked(config: dict, prompt: SystemPrompt) -> None:
    def fails(*told):
        raise ValueError(f"cannot log in with {config['key']}")
    async def later(*told):
        fails()
    on_error = config.get("on_error", "fail")
    {
        "section": lambda: prompt.section("asked", fails, order=1, on_error=on_error),
        "async section": lambda: prompt.section("asked", later, order=1, on_error=on_error),
        "thread": lambda: prompt.section("asked", fails, order=1, thread=True, on_error=on_error),
        "condition": lambda: prompt.section("asked", "Text.", order=1, when=fails, on_error=on_error),
        "context": lambda: prompt.context("asked", fails, order=1, on_error=on_error),
        "variable": lambda: prompt.variable("asked", fails, on_error=on_error),
        "tools": lambda: prompt.tools(fails, on_error=on_error),
        "listener": lambda: prompt.on_assemble(later),
    }[config["what"]]()

async def poller(config: dict, ctx: Context):
    fail = anyio.Event()
    ctx.on(FAIL, fail.set)
    async def poll() -> None:
        await fail.wait()
        raise ValueError(f"cannot log in with {config['key']}")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(poll)
        yield
"""


def everything(error: BaseException) -> Iterator[str]:
    """All that can be read from an error: texts, reprs, attributes, notes, and all that it comes from."""
    seen: set[int] = set()
    ahead: list[BaseException | None] = [error]
    while ahead:
        each = ahead.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield from (str(each), repr(each), repr(each.args), repr(vars(each)), "".join(traceback.format_exception(each)))
        ahead += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


FAILING = ["strict", "picky", "rude", "own", "nothing", "plain", "later", "generator", "agenerator", "named", "child"]


@pytest.mark.anyio
@pytest.mark.parametrize("name", FAILING)
async def test_no_failure_shows_a_secret(
    folder: Folder, name: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever a plugin's code says when it fails, neither the error, nor the log, nor any output shows the value."""
    caplog.set_level(logging.DEBUG)
    folder.write("leaky.py", LEAKY)
    nested = ", nested: {a: '${env:KEY}'}" if name == "strict" else ""
    text = f"plugins: [{{id: a, use: 'leaky:{name}', config: {{key: '${{env:KEY}}'{nested}}}}}]"
    with pytest.raises(DeploymentError) as caught:
        async with folder.open(text, ENVIRONMENT):
            pass
    texts = [*everything(caught.value), *map(repr, caught.value.faults), pickle.dumps(caught.value).decode("latin-1")]
    assert all(map(clean, texts)), next(text for text in texts if not clean(text))
    assert clean(caplog.text)
    assert clean("".join(capfd.readouterr()))
    assert all(fault.path.startswith("plugins[0]") for fault in caught.value.faults)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["teardown", "ateardown", "deferred", "quiet"])
async def test_no_teardown_shows_a_secret(folder: Folder, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nor does what a plugin says when it fails to go."""
    caplog.set_level(logging.DEBUG)
    folder.write("leaky.py", LEAKY)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with folder.open(
            f"plugins: [{{id: a, use: 'leaky:{name}', config: {{key: '${{env:KEY}}'}}}}]", ENVIRONMENT
        ):
            pass
    texts = list(everything(caught.value))
    assert any("cannot go" in text or "cannot log out with ${env:KEY}" in text for text in texts)
    assert all(map(clean, texts))
    assert clean(caplog.text)


PROVIDERS = ["section", "async section", "thread", "condition", "context", "variable", "tools"]


@pytest.mark.anyio
@pytest.mark.parametrize("what", [*PROVIDERS, "listener"])
async def test_no_assembly_shows_a_secret(folder: Folder, what: str) -> None:
    """What a provider, a condition or a listener says when it fails is told to whoever renders without the value."""
    folder.write("leaky.py", LEAKY)
    text = f"plugins: [{{id: a, use: 'leaky:asked', config: {{what: {what}, key: '${{env:KEY}}'}}}}]"
    async with folder.open(text, ENVIRONMENT) as app:
        with pytest.raises(AssemblyError, match=r"of asked .* cannot log in with \$\{env:KEY\}") as caught:
            await app.prompt.render()
        assert all(map(clean, everything(caught.value)))


@pytest.mark.anyio
@pytest.mark.parametrize("what", PROVIDERS)
async def test_no_trace_shows_a_secret(folder: Folder, what: str) -> None:
    """Where the prompt does without a provider, the trace, which logs keep, says why without the value."""
    folder.write("leaky.py", LEAKY)
    config = f"{{what: {what}, on_error: skip, key: '${{env:KEY}}'}}"
    async with folder.open(f"plugins: [{{id: a, use: 'leaky:asked', config: {config}}}]", ENVIRONMENT) as app:
        reasons = "".join(map(str, (await app.prompt.render()).trace.events))
        assert "cannot log in with ${env:KEY}" in reasons
        assert clean(reasons)


@pytest.mark.anyio
async def test_a_failure_after_set_up_shows_no_secret(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    """Nor does what a task of an active plugin raises; the error says that set-up was over."""
    caplog.set_level(logging.DEBUG)
    folder.write("leaky.py", LEAKY)
    async with folder.open("plugins: [{id: a, use: 'leaky:poller', config: {key: '${env:KEY}'}}]", ENVIRONMENT) as app:
        app.ctx.emit(FAIL)
        with anyio.fail_after(20):
            while app.plugins[0].state != "failed":
                await anyio.lowlevel.checkpoint()
    assert "plugin poller failed after set-up and was rolled back: ExceptionGroup" in caplog.text
    assert "cannot log in with ${env:KEY}" in caplog.text
    assert clean(caplog.text)


@pytest.mark.anyio
async def test_what_is_open_shows_no_secret(folder: Folder) -> None:
    """Neither the deployment nor the application show the value: not in reprs, settings, statuses and warnings."""
    folder.write("leaky.py", LEAKY)
    async with folder.open("plugins: [{id: a, use: 'leaky:fine', config: {key: '${env:KEY}'}}]", ENVIRONMENT) as app:
        assert await text_of(app) == "You are an AI agent powered by DeepSeek Harness.\n\nFine."
        shown: list[Any] = [app, app.deployment, app.plugins, app.warnings, app.ctx, app.secrets, app.prompt]
        shown += [app.deployment.effective(ENVIRONMENT), *app.deployment.plugins]
        assert all(clean(text) for each in shown for text in (repr(each), str(each)))
        assert clean(pickle.dumps(app.deployment).decode("latin-1"))
        setting = next(each for each in app.deployment.effective(ENVIRONMENT) if each.path == "plugins[0].config.key")
        assert setting.shown_value == "${env:KEY} (set)"


@pytest.mark.anyio
async def test_a_plugin_gets_the_value(folder: Folder) -> None:
    """The plugin itself gets what the expression stands for, and lists, numbers and plain texts as they are."""
    folder.write("spy.py", "got = []\ndef spy(config: dict) -> None:\n    got.append(config)\n")
    config = "{key: '${env:KEY}', url: 'https://${env:HOST}/$${x}', all: [1, true, '${env:NO:-y}'], no: null}"
    async with folder.open(f"plugins: [{{id: a, use: 'spy:spy', config: {config}}}]", ENVIRONMENT):
        import spy  # type: ignore[import-not-found]

        expected = {"key": SECRET, "url": "https://internal.example/${x}", "all": [1, True, "y"], "no": None}
        assert spy.got == [expected]


@pytest.mark.anyio
async def test_disabled_plugins_need_no_environment(folder: Folder) -> None:
    """The config of a plugin that is left out is not looked up."""
    async with folder.open("plugins: [{id: a, use: 'no:x', disabled: true, config: {key: '${env:NO}'}}]") as app:
        assert [each.state for each in app.plugins] == ["disabled"]


@pytest.mark.anyio
async def test_the_process_environment_is_the_default(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an environment of its own a deployment sees that of the process."""
    monkeypatch.setenv("FOREWORD_TEST_KEY", SECRET)
    folder.write("leaky.py", LEAKY)
    text = "plugins: [{id: a, use: 'leaky:fine', config: {key: '${env:FOREWORD_TEST_KEY}'}}]"
    async with open_deployment(folder.deployment(text)) as app:
        assert app.plugins[0].state == "active"


@pytest.mark.anyio
async def test_what_is_told_instead(folder: Folder) -> None:
    """What a failing plugin says is told with the names in the place of the values, also of several errors at once."""
    folder.write("leaky.py", LEAKY)
    text = "plugins: [{id: a, use: 'leaky:agenerator', config: {key: '${env:HOST}', no: '${env:OTHER}'}}]"
    (fault,) = await folder.open_faults(text, {**ENVIRONMENT, "OTHER": "unused-value"})
    assert "ExceptionGroup: several: ValueError: ${env:HOST}; KeyError: 'other'" in fault.message
