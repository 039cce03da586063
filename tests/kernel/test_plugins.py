"""Plugins: what can be mounted, how services come by annotation, and how configs are made and refused."""

import functools
import types
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import anyio.lowlevel
import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from tests.support.kernel import Alpha, Beta, held, kernel, logged

from foreword import InvalidConfigError, SystemPrompt, SystemPromptConfig
from foreword.errors import (
    InvalidPluginConfigError,
    InvalidPluginError,
    PluginFailedError,
    UnresolvedAnnotationError,
)
from foreword.kernel.context import Context
from foreword.kernel.fiber import FiberState, PluginFiber
from foreword.kernel.plugins import plugin
from foreword.kernel.services import Service

pytestmark = pytest.mark.anyio

SECRET = "hunter2-and-more"


def source(text: str) -> dict[str, Any]:
    """Run a module's text, as a file with `from __future__ import annotations` would have it."""
    module = types.ModuleType("plugin_under_test")
    exec("from __future__ import annotations\n" + text, module.__dict__)
    return module.__dict__


# -- forms -------------------------------------------------------------------------------------------------------------


class Method:
    """Something with a method, and something that is called."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def method(self, ctx: Context) -> None:
        self.log.append(ctx.name)

    def __call__(self, ctx: Context) -> None:
        self.log.append(ctx.name)


def forms(log: list[str]) -> dict[str, Callable[..., object]]:
    def function(ctx: Context) -> None:
        log.append(ctx.name)

    async def later(ctx: Context) -> None:
        await anyio.lowlevel.checkpoint()
        log.append(ctx.name)

    def generator(ctx: Context) -> Generator[None]:
        log.append(ctx.name)
        yield

    async def async_generator(ctx: Context) -> AsyncGenerator[None]:
        await anyio.lowlevel.checkpoint()
        log.append(ctx.name)
        yield

    def prefixed(prefix: str, ctx: Context) -> None:
        log.append(ctx.name)

    return {
        "function": function,
        "async function": later,
        "generator": generator,
        "async generator": async_generator,
        "method": Method(log).method,
        "callable object": Method(log),
        "partial": functools.partial(prefixed, "x"),
        "lambda": lambda: log.append("<lambda>"),
    }


NAMES = {
    "function": "forms.function",
    "async function": "forms.later",
    "generator": "forms.generator",
    "async generator": "forms.async_generator",
    "method": "Method.method",
    "callable object": "Method",
    "partial": "partial",
    "lambda": "<lambda>",
}


@pytest.mark.parametrize("form", NAMES)
async def test_every_form_of_plugin(form: str) -> None:
    """Each is loaded once, and bears the name of its function unless it is given one."""
    log: list[str] = []
    async with kernel() as ctx:
        fiber = await ctx.mount(forms(log)[form]).ready()
        assert fiber.state is FiberState.ACTIVE
        assert fiber.name.removeprefix("forms.") == NAMES[form].removeprefix("forms.")
        assert log == [fiber.name.rpartition(".")[2] if form == "lambda" else fiber.name]


async def test_the_declared_name_is_the_plugin_s() -> None:
    """`plugin(name=…)` names it; the function stays what it was."""

    @plugin(name="acme-billing")
    def billing() -> str:
        """Bills."""
        return "called"

    assert (billing(), billing.__name__, billing.__doc__) == ("called", "billing", "Bills.")
    async with kernel() as ctx:
        assert ctx.mount(billing).name == "acme-billing"
        await anyio.lowlevel.checkpoint()


NO_NAMES = [3, "", "\ud800", b"billing"]


@pytest.mark.parametrize("name", NO_NAMES, ids=ascii)
def test_a_name_that_nothing_could_show_is_refused(name: Any) -> None:
    """Where the plugin is declared: a later error, or a log, would have to spell the name."""

    def billing() -> None:
        raise ValueError("no route")

    with pytest.raises(InvalidPluginError) as caught:
        plugin(name=name)(billing)
    assert str(caught.value) == (
        f"plugin test_a_name_that_nothing_could_show_is_refused.billing: its name must be a non-empty string that "
        f"UTF-8 can spell, not {name!r}; without name=… it is called as its function"
    )


async def test_a_function_with_a_name_that_cannot_be_shown() -> None:
    """It is called by its type then, and told like any other when it fails."""

    def billing() -> None:
        raise ValueError("no route")

    billing.__qualname__ = "\ud800"
    async with kernel() as ctx:
        with pytest.raises(PluginFailedError, match=r"plugin function failed in set-up .* no route"):
            await ctx.mount(billing).ready()


@pytest.mark.parametrize(
    "config", [3, "Config", dict[str, int], Alpha | None, Alpha()], ids=lambda config: type(config).__name__
)
def test_a_config_that_is_no_class_is_refused(config: Any) -> None:
    """Where the plugin is declared, before anything is set up with it."""

    def billing(config: object) -> None: ...

    with pytest.raises(InvalidPluginError, match=r"billing: its config must be a class, not .*; name the class"):
        plugin(name="billing", config=config)(billing)


class NoPlugin:
    """A class that is no service."""


class NotMountable(Service):
    """A service that says nothing of being mounted."""


@pytest.mark.parametrize("target", [3, None, "acme.billing", NoPlugin, NotMountable, {}], ids=repr)
async def test_what_is_no_plugin(target: object) -> None:
    """It is refused at the call, saying what is wanted, and leaves no trace."""
    async with kernel() as ctx:
        before = held(ctx)
        with pytest.raises(
            InvalidPluginError, match="is no plugin; mount a function, an async function or a generator"
        ):
            ctx.mount(target)
        assert held(ctx) == before


async def test_a_function_that_does_not_say_its_parameters() -> None:
    """Some of Python's own do not."""
    async with kernel() as ctx:
        with pytest.raises(InvalidPluginError, match="does not say which parameters it has"):
            ctx.mount(min)


async def test_the_same_function_alone_and_under_a_kernel() -> None:
    """A decorated plain function can be called with a `SystemPrompt` standing alone, and contributes the same."""

    @plugin(name="acme")
    def acme(prompt: SystemPrompt) -> None:
        prompt.variable("company", "Acme")
        prompt.section("acme:rules", "Quote {{company}}.", order=20)

    alone = SystemPrompt(persona="P")
    acme(alone)
    async with kernel() as ctx:
        await ctx.mount(SystemPrompt, {"persona": "P", "include_harness_identity": False}).ready()
        await ctx.mount(acme).ready()
        served = await ctx.require(SystemPrompt).render()
    assert served.text == alone.render_sync().text == "P\n\nQuote Acme."


# -- annotations -------------------------------------------------------------------------------------------------------


async def test_services_come_by_annotation() -> None:
    """In any order, beside the context; `| None` and `Optional` are optional; a default stands for what is missing."""
    seen: list[object] = []

    def body(
        beta: Beta | None,
        ctx: Context,
        alpha: Alpha,
        again: Alpha | None,
        marked: Annotated[Alpha, "mine"],
        limit: int = 3,
        maybe: Beta | None = None,
        *more: str,
        **named: str,
    ) -> None:
        seen.extend((beta, ctx.name, alpha, again, marked, limit, maybe))

    alpha = Alpha()
    async with kernel() as ctx:
        ctx.provide(alpha)
        fiber = await ctx.mount(plugin(name="p")(body)).ready()
        assert seen == [None, "p", alpha, alpha, alpha, 3, None]
        del seen[:]
        ctx.provide(7)
        await fiber.ready()
        assert seen[5] == 7


async def test_annotations_written_as_text() -> None:
    """Resolved where the plugin is defined; what only checkers see of a result or of nothing we need does no harm."""
    module = source(
        """
from typing import TYPE_CHECKING
from foreword.kernel.context import Context
from tests.support.kernel import Alpha
if TYPE_CHECKING:
    from collections.abc import Iterator
seen = []
def body(ctx: Context, alpha: Alpha | None, *rest: Iterator) -> Iterator[None]:
    seen.append(alpha)
    yield
"""
    )
    async with kernel() as ctx:
        assert (await ctx.mount(module["body"]).ready()).state is FiberState.ACTIVE
    assert module["seen"] == [None]


UNRESOLVED = {
    "none": ("def body(alpha): ...", "parameter alpha of plugin body has no annotation"),
    "unknown": ("def body(ctx: Contxt): ...", "parameter ctx of plugin body cannot be resolved: name 'Contxt'"),
    "for checkers only": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from x import Y\ndef body(y: Y | None): ...",
        "parameter y of plugin body cannot be resolved: name 'Y'",
    ),
    "no expression": ('def body(y: "a b"): ...', "parameter y of plugin body cannot be resolved"),
    "no attribute": ("import sys\ndef body(y: sys.nothing): ...", "parameter y of plugin body cannot be resolved"),
    "two classes": ("def body(y: int | str): ...", r"parameter y of plugin body is annotated with int \| str, which"),
    "two and none": ("def body(y: int | str | None): ...", "which is no single class"),
    "no class": ("def body(y: list[int]): ...", r"parameter y of plugin body is annotated with list\[int\], which"),
    "a config that is no class": ("def body(config: int | str): ...", "parameter config of plugin body is annotated"),
    "a callable object": (
        "class Body:\n    def __call__(self, y: Y): ...\nbody = Body()",
        "parameter y of plugin Body",
    ),
}


@pytest.mark.parametrize("what", UNRESOLVED)
async def test_an_annotation_that_cannot_be_used(what: str) -> None:
    """It is refused at the call, by the parameter's name, with what would do instead, and leaves no trace."""
    text, message = UNRESOLVED[what]
    async with kernel() as ctx:
        before = held(ctx)
        with pytest.raises(UnresolvedAnnotationError, match=message) as caught:
            ctx.mount(source(text)["body"])
        assert "annotate it with the type of a service" in str(caught.value)
        assert caught.value.kind == "unresolved_annotation"
        assert held(ctx) == before


class Settings(BaseModel):
    """A config."""


def config_first(config: Settings, other: Settings) -> None: ...
def config_last(other: Settings, config: Settings) -> None: ...
def optional(config: Settings, other: Settings | None) -> None: ...
def contexts(ctx: Context, other: Context) -> None: ...


@pytest.mark.parametrize(
    ("twice", "named"),
    [
        (config_first, "its config twice, as config and as other"),
        (config_last, "its config twice, as other and as config"),
        (optional, "its config twice, as other and as config"),
        (contexts, "its context twice, as ctx and as other"),
    ],
    ids=lambda case: getattr(case, "__name__", "named"),
)
async def test_what_a_plugin_is_given_once_is_taken_once(twice: Callable[..., object], named: str) -> None:
    """Two parameters for the one config, or the one context, are refused when the plugin is mounted."""
    async with kernel() as ctx:
        with pytest.raises(InvalidPluginError, match=named):
            ctx.mount(twice)


async def test_a_declared_config_is_taken_once() -> None:
    """Where the class of the config is declared, that is refused with the declaration, also of annotations as text."""
    with pytest.raises(InvalidPluginError, match="its config twice, as one and as two"):

        @plugin(config=Settings)
        def twice(one: Settings, two: Settings) -> None: ...

    with pytest.raises(InvalidPluginError, match="plugin a: takes its config twice, as config and as other"):
        source(
            "from foreword.kernel.plugins import plugin\nclass C: ...\n"
            "@plugin(name='a', config=C)\ndef p(config: C, other: C): ..."
        )


async def test_parameters_by_position_only() -> None:
    """Parameters are given by name, so these cannot be."""
    async with kernel() as ctx:
        with pytest.raises(InvalidPluginError, match="takes ctx by position only"):
            ctx.mount(source("def body(ctx: int, /): ...")["body"])


# -- configs -----------------------------------------------------------------------------------------------------------


class Limits(BaseModel):
    """A part of a config."""

    model_config = ConfigDict(extra="forbid")
    cents: int = Field(default=100, gt=0)
    by_day: dict[str, int] = {}


class Config(BaseModel):
    """A config with a secret, parts and lists."""

    model_config = ConfigDict(extra="forbid")
    currency: Literal["EUR", "USD"] = "EUR"
    key: SecretStr | None = None
    limits: Limits = Limits()
    rows: list[Limits] = []

    @field_validator("key")
    @classmethod
    def _long(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < 8:
            raise ValueError(f"{key.get_secret_value()} is too short")
        return key


def taking(seen: list[Any], config: type = Config) -> Callable[..., object]:
    @plugin(name="acme", config=config)
    def acme(ctx: Context, settings: config) -> None:  # type: ignore[valid-type]
        seen.append(settings)

    return acme


async def mounted(ctx: Context, config: object, kind: type = Config) -> tuple[PluginFiber, list[Any]]:
    seen: list[Any] = []
    return await ctx.mount(taking(seen, kind), config).ready(), seen


async def test_a_config_is_made_by_its_class() -> None:
    """From nothing, a dict or an object of the class; defaults are filled in; the body and the fiber see the result."""
    async with kernel() as ctx:
        for given, cents in (
            (None, 100),
            ({}, 100),
            ({"limits": {"cents": 5}}, 5),
            (Config(limits=Limits(cents=7)), 7),
        ):
            fiber, seen = await mounted(ctx, given)
            [config] = seen
            assert isinstance(config, Config)
            assert config.limits.cents == cents
            assert fiber.config is config


async def test_a_config_by_the_name_of_its_parameter() -> None:
    """Without a declared class, a parameter called `config` says of which class it is; `Any` takes everything."""
    seen: list[object] = []

    def typed(config: Config | None = None) -> None:
        assert config is not None
        seen.append(config.currency)

    def loose(config: dict[str, int]) -> None:
        seen.append(config)

    def anything(config: Any) -> None:
        seen.append(config)

    async with kernel() as ctx:
        await ctx.mount(typed, {"currency": "USD"}).ready()
        await ctx.mount(loose, {"n": 1}).ready()
        await ctx.mount(loose).ready()
        await ctx.mount(anything, 3).ready()
        await ctx.mount(anything).ready()
    assert seen == ["USD", {"n": 1}, {}, 3, None]


async def test_a_config_annotated_with_another_class() -> None:
    """A plugin that declares one class and annotates another is refused when it is mounted."""

    @plugin(name="acme", config=Config)
    def acme(config: Limits) -> None: ...

    async with kernel() as ctx:
        with pytest.raises(
            UnresolvedAnnotationError, match="annotated with Limits, and the plugin's config is a Config"
        ):
            ctx.mount(acme)


BAD = {
    "currency": "GBP",
    "key": "short",
    "limits": {"cents": "many", "by_day": {"monday": [SECRET]}, "centz": 1},
    "rows": [{}, {"cents": 0}],
}
PATHS = {"currency", "key", "limits.cents", "limits.by_day.monday", "limits.centz", "rows.1.cents"}


async def test_every_fault_at_once_with_its_path() -> None:
    """Nested models and lists included; the body never ran; no value is shown, secret or not, by any way."""
    seen: list[Any] = []
    async with kernel() as ctx:
        fiber = ctx.mount(taking(seen), BAD)
        with pytest.raises(InvalidPluginConfigError, match="the config of plugin acme has 6 faults") as caught:
            await fiber.ready()
        assert {fault.field for fault in caught.value.faults} == PATHS
        told = [str(caught.value), repr(caught.value), *(fault.message for fault in caught.value.faults)]
        cause: BaseException | None = caught.value
        while cause is not None:
            told.append(str(cause))
            cause = cause.__cause__ or cause.__context__
        for text in told:
            for value in ("GBP", "short is", "many", SECRET):
                assert value not in text
        assert (seen, fiber.state) == ([], FiberState.FAILED)


class Lenient(BaseModel):
    """A config that says nothing of further keys, in itself or in its parts."""

    class Row(BaseModel):
        cents: int = 1

    currency: str = "EUR"
    cur: int = Field(default=0, alias="re-named")
    rows: list[Row] = []


async def test_a_key_that_would_be_dropped_in_silence() -> None:
    """It is a fault, told with the key that may be meant, when mounting and when updating; the plugin goes on then."""
    async with kernel() as ctx:
        with pytest.raises(InvalidPluginConfigError) as caught:
            await mounted(ctx, {"currencie": "USD", "rows": [{}, {"cent": 5}], 3: 4, "re-named": 1}, Lenient)
        assert {fault.field for fault in caught.value.faults} == {"currencie", "rows.1.cent", "3"}
        assert 'did you mean "currency"?' in caught.value.faults[0].message
        assert 'extra="ignore"' in caught.value.faults[0].message
        fiber, seen = await mounted(ctx, {"currency": "USD"}, Lenient)
        with pytest.raises(InvalidPluginConfigError, match="currencie: is no key of the plugin's config"):
            await fiber.update({"currencie": "GBP"})
        assert [config.currency for config in seen] == ["USD"]
        assert fiber.state is FiberState.ACTIVE


@pytest.mark.parametrize("extra", ["allow", "ignore"])
async def test_a_model_may_say_what_it_does_with_further_keys(extra: Literal["allow", "ignore"]) -> None:
    """Then they are left to it."""

    class Open(BaseModel):
        model_config = ConfigDict(extra=extra)
        currency: str = "EUR"

    async with kernel() as ctx:
        _, [config] = await mounted(ctx, {"currencie": "USD"}, Open)
        assert config.currency == "EUR"
        assert getattr(config, "currencie", None) == ("USD" if extra == "allow" else None)


async def test_no_value_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The log of a failed plugin tells the faults, not what was given."""
    async with kernel() as ctx:
        ctx.mount(taking([]), {"key": "hunter2", "currency": SECRET})
        await anyio.wait_all_tasks_blocked()
    assert "limits" not in caplog.text
    assert "key: Value error, … is too short" in caplog.text
    assert "hunter2" not in caplog.text
    assert SECRET not in caplog.text


class Card(BaseModel):
    kind: Literal["card"]


class Cash(BaseModel):
    kind: Literal["cash"]


class Tagged(BaseModel):
    """A config whose faults quote what was given."""

    pay: Annotated[Card | Cash, Field(discriminator="kind")]


async def test_a_tag_that_a_message_would_quote() -> None:
    """Some of pydantic's own messages show the value; it is blotted out there, too."""
    async with kernel() as ctx:
        with pytest.raises(InvalidPluginConfigError) as caught:
            await mounted(ctx, {"pay": {"kind": SECRET}}, Tagged)
        assert SECRET not in str(caught.value)
        assert "does not match any of the expected tags" in str(caught.value)


@dataclass
class Plain:
    """A config without pydantic."""

    word: str = ""

    def __post_init__(self) -> None:
        if len(self.word) > 10:
            raise ValueError(f"{self.word} is too long")


async def test_a_config_of_any_class() -> None:
    """It is called with what is given; what it refuses is a fault, without the values."""
    async with kernel() as ctx:
        _, seen = await mounted(ctx, {"word": "yes"}, Plain)
        assert seen == [Plain("yes")]
        for given, message in (
            ({"word": SECRET}, "… is too long"),
            ({"wrod": ""}, "unexpected keyword argument 'wrod'"),
            (3, "must be a Plain, not a int"),
        ):
            with pytest.raises(InvalidPluginConfigError, match=message) as caught:
                await mounted(ctx, given, Plain)
            assert SECRET not in str(caught.value)


async def test_a_config_for_a_plugin_that_takes_none() -> None:
    """It is a fault, for it would do nothing; an empty one is none."""
    async with kernel() as ctx:
        await ctx.mount(logged("p", []), {}).ready()
        with pytest.raises(InvalidPluginConfigError, match="the plugin takes no config; drop it"):
            await ctx.mount(logged("q", []), {"currency": "EUR"}).ready()


async def test_a_declared_config_need_not_be_taken() -> None:
    """It is checked all the same."""

    @plugin(name="acme", config=Config)
    def acme() -> None: ...

    async with kernel() as ctx:
        await ctx.mount(acme, {"currency": "USD"}).ready()
        with pytest.raises(InvalidPluginConfigError):
            await ctx.mount(acme, {"currency": "GBP"}).ready()


async def test_the_faults_of_our_own_config_come_as_they_are() -> None:
    """`SystemPromptConfig` tells its faults itself, all of them."""
    async with kernel() as ctx:
        fiber = ctx.mount(SystemPrompt, {"persona": 3, "tool_order": ["a", "a"]})
        with pytest.raises(InvalidConfigError) as caught:
            await fiber.ready()
        assert len(caught.value.faults) == 2
        assert (await fiber.update(SystemPromptConfig(persona="P"))).state is FiberState.ACTIVE


class Explosive(BaseModel):
    """A config whose validator raises what pydantic does not catch."""

    n: int

    @field_validator("n")
    @classmethod
    def _explode(cls, n: int) -> int:
        if n:
            raise LookupError("validator")
        return n


async def test_a_validator_that_raises_something_else() -> None:
    """Mounting fails with it, an update is refused with it, and the plugin goes on."""
    async with kernel() as ctx:
        with pytest.raises(PluginFailedError, match="LookupError: validator"):
            await mounted(ctx, {"n": 1}, Explosive)
        fiber, seen = await mounted(ctx, {"n": 0}, Explosive)
        with pytest.raises(LookupError, match="validator"):
            await fiber.update({"n": 1})
        assert (fiber.state, len(seen)) == (FiberState.ACTIVE, 1)
