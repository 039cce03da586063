"""Nothing that was said to one tenant reaches another, however their assemblies interleave and whatever fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword import AssembleContext, ContextKey, ModelRef, ProviderFailedError, SystemPrompt

TENANT = ContextKey("tenant", str)
STEP = ContextKey("step", object)
TENANTS = ("red", "blue")
KINDS = ("section", "context", "variable")


@dataclass(frozen=True)
class Step:
    """One assembly: whose, for which model, and for each kind of provider how long it takes and whether it fails."""

    tenant: str | None  # None: the caller forgot to say
    model: str
    ticks: tuple[int, int, int]
    fails: tuple[bool, bool, bool]
    after: int  # ticks before it begins

    @property
    def mark(self) -> str:
        """What every text for this step bears."""
        return f"{self.tenant}/{self.model}"


steps = st.builds(
    Step,
    tenant=st.sampled_from((*TENANTS, *TENANTS, None)),
    model=st.sampled_from(("m1", "m2")),
    ticks=st.tuples(*[st.integers(0, 4)] * 3),
    fails=st.tuples(*[st.booleans()] * 3),
    after=st.integers(0, 6),
)


def provider(kind: str) -> Callable[[AssembleContext], Any]:
    """A provider that says whom it speaks to, after a while, if at all."""
    at = KINDS.index(kind)

    async def answer(context: AssembleContext) -> str:
        step = context[STEP]
        assert isinstance(step, Step)
        for _ in range(step.ticks[at]):
            await anyio.lowlevel.checkpoint()
        if step.fails[at]:
            raise OSError("the account is out of reach")
        return f"<{kind} {step.mark}>"

    return answer


async def lives(prompt: SystemPrompt, plan: list[Step]) -> list[tuple[Step, str | ProviderFailedError]]:
    """All steps at once: what each was told."""
    told: list[tuple[Step, str | ProviderFailedError]] = []

    async def live(step: Step) -> None:
        for _ in range(step.after):
            await anyio.lowlevel.checkpoint()
        values: dict[ContextKey[Any], Any] = {STEP: step}
        if step.tenant is not None:
            values[TENANT] = step.tenant
        try:
            rendering = await prompt.render(AssembleContext(values, model=ModelRef("p", step.model)))
        except ProviderFailedError as error:
            told.append((step, error))
        else:
            told.append((step, rendering.text + rendering.snapshot))

    async with anyio.create_task_group() as tasks:
        for step in plan:
            tasks.start_soon(live, step)
    return told


def tenants_prompt() -> SystemPrompt:
    """A prompt with a failing provider of each kind."""
    prompt = SystemPrompt()
    prompt.section("account", provider("section"), order=1, on_error="last_good", last_good_by=(TENANT,))
    prompt.context("orders", provider("context"), order=1, on_error="last_good", last_good_by=(TENANT,))
    prompt.variable("who", provider("variable"), on_error="last_good", last_good_by=(TENANT,))
    prompt.section("greeting", "Hello {{who}}.", order=0)
    return prompt


@settings(max_examples=200)
@given(plan=st.lists(steps, min_size=2, max_size=12))
def test_no_text_crosses_from_one_tenant_or_model_to_another(plan: list[Step]) -> None:
    """Each step gets texts of its own tenant and model, or an error; without a tenant, only what was made for it."""
    for step, text in anyio.run(lives, tenants_prompt(), plan):
        if isinstance(text, ProviderFailedError):
            assert any(step.fails)
            continue
        others = {other.mark for other in plan} - {step.mark}
        assert [text.count(f" {step.mark}>")] == [3]
        assert not [mark for mark in others if mark in text]
        if step.tenant is None:
            assert not any(step.fails), "without a tenant there is nothing to go back to"


@settings(max_examples=50)
@given(failing=st.lists(st.sampled_from(TENANTS), min_size=1, max_size=6))
def test_what_was_good_for_a_tenant_is_good_for_it_again(failing: list[str]) -> None:
    """A failing provider goes back to what its own tenant was told last."""
    prompt = tenants_prompt()
    good = [Step(tenant, "m1", (0, 0, 0), (False, False, False), 0) for tenant in TENANTS]
    bad = [Step(tenant, "m1", (0, 0, 0), (True, True, True), 0) for tenant in failing]

    async def both() -> None:
        at_first = dict(zip(TENANTS, [text for _, text in await lives(prompt, good)], strict=True))
        for step, text in await lives(prompt, bad):
            assert step.tenant is not None
            assert text == at_first[step.tenant]

    anyio.run(both)
