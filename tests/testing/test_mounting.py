"""`mount`: what it gives the author of a plugin, and what it finds that a plugin leaves behind."""

# Without `from __future__ import annotations`: the kernel reads the annotations of plugins made in functions.
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup
from pydantic import BaseModel

from foreword import (
    AssembleContext,
    Context,
    Event,
    InvalidPluginConfigError,
    MissingServiceError,
    Mode,
    PluginFailedError,
    PluginTimeoutError,
    SystemPrompt,
    SystemPromptConfig,
    ToolSchema,
    plugin,
)
from foreword.testing import Mounted, mount

pytestmark = pytest.mark.anyio

LONG = 20.0


class Config(BaseModel):
    currency: str = "EUR"


@plugin(name="acme-billing", config=Config)
def billing(config: Config, prompt: SystemPrompt) -> None:
    prompt.variable("currency", config.currency)
    prompt.section("acme-billing:rules", "Quote prices in {{currency}}.", order=20)
    prompt.context("acme-billing:rate", lambda: "The rate is 1.08.", order=10)


class Ledger:
    """A service."""

    def balance(self) -> int:
        return 7


class EmptyLedger(Ledger):
    """A stand-in for it."""

    def balance(self) -> int:
        return 0


@plugin(name="acme-report")
def report(ledger: Ledger, prompt: SystemPrompt) -> None:
    prompt.section("acme-report:balance", f"The balance is {ledger.balance()}.", order=20)


# -- what it gives -----------------------------------------------------------------------------------------------------


async def test_the_plugin_is_loaded_in_a_prompt_of_its_own() -> None:
    """Its contributions are all that the prompt holds; its config is what its body got."""
    async with mount(billing, {"currency": "USD"}) as mounted:
        rendering = await mounted.render()
        assert rendering.text == "Quote prices in USD."
        assert rendering.snapshot.endswith("The rate is 1.08.")
        assert [(ref.kind, ref.name, ref.owner) for ref in mounted.contributions] == [
            ("variable", "currency", "acme-billing"),
            ("section", "acme-billing:rules", "acme-billing"),
            ("context", "acme-billing:rate", "acme-billing"),
        ]
        assert mounted.fiber.config == Config(currency="USD")
        assert (mounted.ctx.name, mounted.kernel.name) == ("acme-billing", "root")
        assert repr(mounted) == "<Mounted acme-billing: active>"


async def test_files_that_are_registered_together_are_told_one_by_one(tmp_path: Path) -> None:
    """Each file of a folder is a contribution with a place of its own, until they go together."""
    for name in ("tone", "terms"):
        (tmp_path / f"{name}.md").write_text(f"The {name}.", encoding="utf-8")

    @plugin(name="acme-texts")
    def texts(prompt: SystemPrompt) -> None:
        prompt.sections_from(tmp_path, order=10)

    async with mount(texts) as mounted:
        told = [(ref.kind, ref.name, (ref.source or "").rsplit("/", 1)[-1]) for ref in mounted.contributions]
        assert told == [("section", "acme-texts:terms", "terms.md:1"), ("section", "acme-texts:tone", "tone.md:1")]
        await mounted.unload()
        assert mounted.contributions == ()


async def test_another_config() -> None:
    """`update` loads the plugin anew; a config that does not fit changes nothing."""
    async with mount(billing) as mounted:
        await mounted.update(Config(currency="CHF"))
        assert (await mounted.render()).text == "Quote prices in CHF."
        with pytest.raises(InvalidPluginConfigError, match="currency"):
            await mounted.update({"currency": 5})
        assert (await mounted.render()).text == "Quote prices in CHF."


async def test_the_prompt_after_unloading() -> None:
    """`unload` leaves the prompt as it was before, to be looked at; unloading by hand is enough."""
    async with mount(billing, persona="You are a clerk.") as mounted:
        assert (await mounted.render()).text == "You are a clerk.\n\nQuote prices in EUR."
        await mounted.unload()
        assert (await mounted.render()).text == "You are a clerk."
        assert mounted.contributions == ()


async def test_how_the_prompt_is_configured() -> None:
    """By fields, or by a configuration; what the plugin provides may be counted on in both."""
    async with mount(billing, persona="You know {{currency}}.") as mounted:
        assert (await mounted.render()).text.startswith("You know EUR.")
    async with mount(billing, system_prompt=SystemPromptConfig(identity="I am.")) as mounted:
        assert (await mounted.render()).text.startswith("I am.")
    with pytest.raises(TypeError, match="not both"):
        async with mount(billing, system_prompt=SystemPromptConfig(), persona="You are a clerk."):
            pass


async def test_services() -> None:
    """What else a plugin needs is provided under its own type, or under the one that it stands in for."""
    async with mount(report, services=[Ledger()]) as mounted:
        assert (await mounted.render()).text == "The balance is 7."
    async with mount(report, services={Ledger: EmptyLedger()}) as mounted:
        assert (await mounted.render()).text == "The balance is 0."


async def test_other_plugins() -> None:
    """What stands beside the plugin is mounted before it, with or without a config, and may be made in the test."""

    def provider(ctx: Context) -> None:
        ctx.provide(Ledger())

    def bash(prompt: SystemPrompt) -> None:
        prompt.tools([ToolSchema("bash", "Run a command.", {})])

    beside = [provider, bash, (billing, {"currency": "USD"})]
    async with mount(report, plugins=beside, tool_order=["bash", "<unlisted-tools>"]) as mounted:
        rendering = await mounted.render()
        assert rendering.text == "Quote prices in USD.\n\nThe balance is 7."
        assert [tool.name for tool in rendering.tools] == ["bash"]
        assert {ref.owner for ref in mounted.contributions} == {"acme-report"}


async def test_services_that_come_and_go() -> None:
    """Through the kernel a test plays the rest of an application: here a provider that goes and returns."""

    def either(ledger: Ledger | None, prompt: SystemPrompt) -> None:
        prompt.section("either", "Without." if ledger is None else "With.", order=1)

    async with mount(either) as mounted:
        with mounted.kernel.provide(Ledger()):
            await mounted.fiber.ready()
            assert (await mounted.render()).text == "With."
        await mounted.fiber.ready()
        assert (await mounted.render()).text == "Without."


async def test_scopes_and_plugins_of_the_plugin() -> None:
    """Their contributions count as the plugin's, and go with it."""

    @plugin(name="outer")
    def outer(ctx: Context, prompt: SystemPrompt) -> None:
        prompt.section("outer", "Outer.", order=1)
        prompt.scope("agent").section("inner", "Inner.", order=2)
        ctx.mount(billing)

    async with mount(outer) as mounted:
        assert {ref.owner for ref in mounted.contributions} == {"outer", "agent", "acme-billing"}
        [agent] = mounted.prompt.scopes
        assert "Inner." in (await mounted.render(AssembleContext(scope=agent))).text


@pytest.mark.parametrize("form", ["plain", "async", "generator", "async generator"])
async def test_every_form_of_plugin(form: str) -> None:
    """A plugin may have any of the four forms; teardown has run when `mount` is left."""
    log: list[str] = []

    def plain(ctx: Context) -> None:
        ctx.defer(lambda: log.append("down"))

    async def waiting(ctx: Context) -> None:
        await anyio.lowlevel.checkpoint()
        ctx.defer(lambda: log.append("down"))

    def generator() -> Generator[None]:
        yield
        log.append("down")

    async def holding() -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            yield
            tasks.cancel_scope.cancel()
        log.append("down")

    forms = {"plain": plain, "async": waiting, "generator": generator, "async generator": holding}
    async with mount(forms[form]):
        assert log == []
    assert log == ["down"]


# -- plugins that do not load ------------------------------------------------------------------------------------------


async def refused(plugin: Any, *given: Any, **options: Any) -> BaseException:
    """What `mount` raises before the test's own code runs."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the tests look at it
        async with mount(plugin, *given, **options):
            raise KeyboardInterrupt("it was entered")
    return caught.value


async def test_a_failing_set_up() -> None:
    """Its error names the plugin, and has what it raised as its cause; what it had registered was rolled back."""

    def broken(prompt: SystemPrompt) -> None:
        prompt.section("broken", "text", order=1)
        raise ConnectionError("no route")

    error = await refused(plugin(name="acme-broken")(broken))
    assert isinstance(error, PluginFailedError)
    assert "plugin acme-broken failed in set-up" in str(error)
    assert isinstance(error.__cause__, ConnectionError)
    assert not hasattr(error, "__notes__")


async def test_a_failing_set_up_that_leaves_something() -> None:
    """The failure comes first; what is left in spite of rolling back is noted on it."""

    def broken(ctx: Context) -> None:
        outside(ctx).section("left", "text", order=1)
        raise ConnectionError("no route")

    error = await refused(broken)
    assert isinstance(error, PluginFailedError)
    assert 'section "left" of root' in "".join(error.__notes__)


async def test_a_hanging_set_up() -> None:
    """It is named when its time is over."""

    async def hanging() -> None:
        await anyio.sleep_forever()

    error = await refused(plugin(name="acme-slow")(hanging), setup_timeout=0.05)
    assert isinstance(error, PluginTimeoutError)
    assert str(error).startswith("plugin acme-slow hangs in set-up")


async def test_a_missing_service() -> None:
    """It is named, and so is who needs it."""
    error = await refused(report)
    assert isinstance(error, MissingServiceError)
    assert (error.service, error.plugin, error.provided) == ("Ledger", "acme-report", ("SystemPrompt",))
    assert "services=[…], or a plugin that provides it, plugins=[…]; provided now: SystemPrompt" in str(error)


class Till:
    """A service that stands on another one."""


async def test_services_that_wait_for_each_other() -> None:
    """Where the plugin that would provide the service waits itself, it is named."""

    def till(ctx: Context, ledger: Ledger) -> None:
        ctx.provide(Till())

    def ledger(ctx: Context, till: Till) -> None:
        ctx.provide(Ledger())

    error = await refused(ledger, plugins=[till])
    assert isinstance(error, MissingServiceError)
    assert error.service == "Till"
    assert "then they wait for each other (test_services_that_wait_for_each_other.till)" in str(error)


async def test_a_config_that_does_not_fit() -> None:
    """It is refused as it would be in an application."""
    assert isinstance(await refused(billing, {"currency": 5}), InvalidPluginConfigError)


async def test_a_plugin_of_the_plugin_that_does_not_load() -> None:
    """It is waited for, and what hinders it is told, as if it were the plugin itself."""

    def outer(ctx: Context) -> None:
        ctx.mount(report)

    error = await refused(outer)
    assert isinstance(error, MissingServiceError)
    assert (error.service, error.plugin) == ("Ledger", "acme-report")
    async with mount(outer, services=[Ledger()]) as mounted:
        assert (await mounted.render()).text == "The balance is 7."


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"services": {"Ledger": Ledger()}}, r"mount\(services=…\) has the key 'Ledger', which is no class"),
        ({"services": Ledger()}, r"mount\(services=…\) is .*; give a list of services"),
        ({"services": "ledger"}, r"mount\(services=…\) is 'ledger'; give a list of services"),
        ({"plugins": billing}, r"mount\(plugins=…\) is .*; give a list of plugins"),
        ({"plugins": [(billing, {}, 3)]}, r"mount\(plugins=…\) holds a tuple of 3; .* a pair \(plugin, config\)"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "hint",
)
async def test_what_stands_beside_is_given_as_the_signature_says(options: dict[str, Any], hint: str) -> None:
    """Anything else is told by the option's name, with what it must be."""
    error = await refused(report, **options)
    assert isinstance(error, TypeError)
    assert re.search(hint, str(error))


# -- what is left ------------------------------------------------------------------------------------------------------


def above(ctx: Context) -> Context:
    """A context that is not the plugin's own: what a careless one gets hold of."""
    assert ctx.fiber.parent is not None
    return ctx.of(ctx.fiber.parent)


def outside(ctx: Context) -> SystemPrompt:
    """A view of the prompt that is not the plugin's own."""
    return above(ctx).require(SystemPrompt)


def changed() -> None:
    """Something changed."""


CHANGED = Event("test/changed", Mode.EMIT, changed)


def leaks(leak: Callable[[Context], object]) -> Callable[..., None]:
    @plugin(name="acme-leaky")
    def leaky(ctx: Context) -> None:
        leak(ctx)

    return leaky


async def what_is_found(plugin: Callable[..., object], **options: Any) -> str:
    """The message of the `AssertionError` on leaving."""
    with pytest.raises(AssertionError) as caught:
        async with mount(plugin, **options) as mounted:
            assert isinstance(mounted, Mounted)
    return str(caught.value)


@pytest.mark.parametrize(
    ("leak", "named"),
    [
        (lambda ctx: outside(ctx).section("s", "text", order=1), 'section "s" of root (tests/testing/test_mounting.py:'),
        (lambda ctx: outside(ctx).variable("v", "text"), 'variable "v" of root'),
        (lambda ctx: outside(ctx).context("c", "text", order=1), 'context "c" of root'),
        (lambda ctx: outside(ctx).tools([ToolSchema("t", "", {})]), 'tool provider "tools" of root'),
        (lambda ctx: outside(ctx).protect(tools=["t"]), "protection"),
        (lambda ctx: outside(ctx).suppress_runtime_context(), "suppressor"),
        (lambda ctx: outside(ctx).on_change(changed), 'listener "changed" of root'),
        (lambda ctx: above(ctx).on(CHANGED, changed), 'listener "changed" of root'),
        (lambda ctx: above(ctx).provide(Ledger()), "service Ledger of root"),
        (lambda ctx: above(ctx).defer(changed), "undo of root"),
        (lambda ctx: above(ctx).mount(billing), "plugin acme-billing below root"),
        (lambda ctx: above(ctx).scope("agent"), "scope agent below root"),
    ],
)  # fmt: skip
async def test_what_goes_past_the_plugin_is_found(leak: Callable[[Context], object], named: str) -> None:
    """Whatever was registered through somebody else's view is named, with its place, and the plugin with it."""
    found = await what_is_found(leaks(leak))
    assert found.startswith("plugin acme-leaky is unloaded, and left behind:\n  ")
    assert named in found


async def test_what_a_provider_registers_is_found() -> None:
    """Also when it happens long after set-up."""

    def late(ctx: Context, prompt: SystemPrompt) -> None:
        def text() -> str:
            if outside(ctx).scopes == ():
                outside(ctx).scope("new").section("late", "text", order=1)
            return "text"

        prompt.section("early", text, order=1)

    with pytest.raises(AssertionError, match='section "late" of new in scope new'):
        async with mount(late) as mounted:
            await mounted.render()


async def test_a_task_that_goes_on_is_found() -> None:
    """It is named, once it had time to end."""

    class Jobs:
        """A service that runs what it is given, for ever."""

        def __init__(self, tasks: TaskGroup) -> None:
            self.tasks = tasks

    async def poll_the_wiki() -> None:
        await anyio.sleep_forever()

    def leaky(jobs: Jobs) -> None:
        jobs.tasks.start_soon(poll_the_wiki)

    async with anyio.create_task_group() as tasks:
        found = await what_is_found(leaky, services=[Jobs(tasks)])
        assert "poll_the_wiki" in found
        tasks.cancel_scope.cancel()


async def test_a_task_that_ends_soon_is_no_fault() -> None:
    """What the plugin cancelled on its way out may need a turn to end."""

    async def leaving(ctx: Context) -> AsyncGenerator[None]:
        scope = anyio.CancelScope()

        async def work() -> None:
            with scope:
                try:
                    await anyio.sleep_forever()
                finally:
                    with anyio.CancelScope(shield=True):
                        for _ in range(10):
                            await anyio.lowlevel.checkpoint()

        tasks.start_soon(work)
        yield
        scope.cancel()

    async with anyio.create_task_group() as tasks, mount(leaving):
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda shared: shared.append(ToolSchema("b", "", {})), 'tool "b" of an assembly is new'),
        (lambda shared: shared.clear(), 'tool "a" of an assembly is gone'),
        (lambda shared: shared.__setitem__(0, ToolSchema("a", "Other.", {})), 'tool "a" of an assembly is another one'),
        (lambda shared: shared.append(5), "an assembly fails otherwise than before"),
    ],
)
async def test_another_assembly_is_found(change: Callable[[list[Any]], object], named: str) -> None:
    """What a plugin changes of what others contribute is found in the assembly, though nothing is registered."""
    shared = [ToolSchema("a", "", {})]

    def owner(prompt: SystemPrompt) -> None:
        prompt.tools(lambda: list(shared))

    found = await what_is_found(leaks(lambda ctx: change(shared)), plugins=[owner])
    assert named in found


async def test_unloading_tells_at_once_and_only_once() -> None:
    """`unload` raises where it is called; leaving then has no more to say."""
    async with mount(leaks(lambda ctx: outside(ctx).section("s", "text", order=1))) as mounted:
        with pytest.raises(AssertionError, match='section "s"'):
            await mounted.unload()


async def test_what_undos_raise_reaches_the_test() -> None:
    """A teardown that fails is no leak, but no success either."""

    def failing() -> Generator[None]:
        yield
        raise ConnectionError("no route")

    with pytest.raises(BaseExceptionGroup, match="undoing acme-failing failed") as caught:
        async with mount(plugin(name="acme-failing")(failing)):
            pass
    assert caught.group_contains(ConnectionError, match="no route")


async def test_the_error_of_the_test_comes_first() -> None:
    """What is found on the way out is noted on it."""
    with pytest.raises(ZeroDivisionError) as caught:
        async with mount(leaks(lambda ctx: outside(ctx).section("s", "text", order=1))):
            raise ZeroDivisionError
    assert 'section "s" of root' in "".join(caught.value.__notes__)


async def test_what_the_test_registers_counts_as_well() -> None:
    """What a test itself puts into the prompt has to be undone, as with `with`, before it leaves."""
    async with mount(billing) as mounted:
        with mounted.prompt.section("mine", "Mine.", order=1):
            assert (await mounted.render()).text.startswith("Mine.")


# -- without a test framework ------------------------------------------------------------------------------------------

SCRIPT = """\
import asyncio, sys
from foreword import SystemPrompt
from foreword.testing import mount

def hello(prompt: SystemPrompt) -> None:
    prompt.section("hello", "Hello.", order=1)

async def main() -> None:
    async with mount(hello) as mounted:
        print((await mounted.render()).text)

asyncio.run(main())
print(sorted({"pytest", "hypothesis", "trio"} & sys.modules.keys()))
"""


def test_it_needs_no_test_framework() -> None:
    """A plain script can use it; nothing of a test framework is loaded."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n[]\n", "")
