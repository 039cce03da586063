"""Model selection: prompt and route of a step come from one reading, and a change counts from the next."""

import json
from typing import Any

import pytest
from tests.agent.support import Sleeps, stage

from foreword import (
    AGENT_REQUEST,
    SYSTEM_PROMPT_ASSEMBLE,
    InactiveContextError,
    ModelSelection,
    assemble_context_for,
    install_model_selection,
)
from foreword.errors import InvalidModelError
from foreword.wire.chunks import ModelFailure
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio

PERSONA = "{{provider}}:{{model}}"


def told(play: Any) -> list[tuple[str, str]]:
    """What each request said in its prompt, and where it went."""
    requests = [json.loads(each) for each in play.model.requests]
    return [(each["system"], f"{each['config']['provider']}:{each['config']['model']}") for each in requests]


def settings(play: Any) -> list[dict[str, Any]]:
    return [json.loads(each)["config"]["settings"] for each in play.model.requests]


async def test_prompt_and_route_agree() -> None:
    """No selection: the agent's own model; selected: that one, in variables, context and route; removed: its own again."""
    async with stage(lambda request: "Fine.", persona=PERSONA) as play:
        agent = await play.agent()
        selection = ModelSelection()
        registration = install_model_selection(agent, selection)
        seen: list[str] = []
        play.prompt.context("model", lambda context: seen.append(context.model.name) or "", order=1)
        await agent.run("1")
        selection.current = "scripted:m2"
        await agent.run("2")
        selection.current = None
        await agent.run("3")
        selection.current = "scripted:m3"
        registration.close()
        await agent.run("4")
        assert told(play) == [("scripted:m1",) * 2, ("scripted:m2",) * 2, ("scripted:m1",) * 2, ("scripted:m1",) * 2]
        assert seen == ["m1", "m2", "m1", "m1"]


@pytest.mark.parametrize("when", ["assembly", "request", "retry"])
async def test_a_switch_counts_from_the_next_step(when: str) -> None:
    """A change after the assembly began (in a listener, before the request, between retries) waits for the next step."""
    busy = ModelFailure("overloaded", "overloaded", transient=True)
    async with stage(*([busy] if when == "retry" else []), "One.", "Two.", persona=PERSONA) as play:
        agent = await play.agent(clock=Sleeps().clock)
        selection = ModelSelection("scripted:alpha")
        install_model_selection(agent, selection)

        async def switch(*heard: Any) -> Any:
            result = await heard[-1]()
            if when == "assembly" or heard[0].attempt == (2 if when == "retry" else 1):
                selection.current = "scripted:beta"
            return result

        agent.ctx.on(SYSTEM_PROMPT_ASSEMBLE if when == "assembly" else AGENT_REQUEST, switch, prepend=True)
        await agent.run("1")
        await agent.run("2")
        alphas = 2 if when == "retry" else 1
        assert told(play) == [("scripted:alpha",) * 2] * alphas + [("scripted:beta",) * 2]


async def test_settings_of_the_selected_model() -> None:
    """The effort is the selected model's own or the default; other settings are inherited, unless it has them."""
    async with stage(lambda request: "Fine.") as play:
        own = ModelConfig("scripted", "m1", {"reasoning_effort": "high", "temperature": 0.5})
        agent = await play.agent(model=own)
        selection = ModelSelection("scripted:m2")
        install_model_selection(agent, selection)
        await agent.run("1")
        selection.current = ModelConfig("scripted", "m3", {"reasoning_effort": "low", "max_tokens": 9})
        await agent.run("2")
        assert settings(play) == [
            {"temperature": 0.5},
            {"temperature": 0.5, "reasoning_effort": "low", "max_tokens": 9},
        ]


async def test_an_agent_without_a_model() -> None:
    """Selecting one is enough."""
    async with stage("Fine.", persona=PERSONA) as play:
        agent = await play.agent(model=None)
        install_model_selection(agent, ModelSelection("scripted:m2"))
        await agent.run("Hi")
        assert told(play) == [("scripted:m2",) * 2]


async def test_the_last_one_that_selects_something_counts() -> None:
    """Two selections: the inner one gives way while it selects nothing."""
    async with stage(lambda request: "Fine.", persona=PERSONA) as play:
        agent = await play.agent()
        outer, inner = ModelSelection("scripted:outer"), ModelSelection()
        install_model_selection(agent, outer)
        registration = install_model_selection(agent, inner)
        await agent.run("1")
        inner.current = "scripted:inner"
        await agent.run("2")
        registration.close()
        await agent.run("3")
        assert [route for _, route in told(play)] == ["scripted:outer", "scripted:inner", "scripted:outer"]


async def test_contexts_of_others_disturb_nobody() -> None:
    """Making a context for show in the midst of a step does not move the step to another model."""
    async with stage("Fine.", persona=PERSONA) as play:
        agent = await play.agent()
        selection = ModelSelection("scripted:alpha")
        install_model_selection(agent, selection)

        async def peek(proposed: Any, call_next: Any) -> Any:
            selection.current = "scripted:beta"
            shown = await play.prompt.render(assemble_context_for(agent))
            assert shown.text == "scripted:beta"
            return await call_next()

        agent.ctx.on(AGENT_REQUEST, peek, prepend=True)
        await agent.run("Hi")
        assert told(play) == [("scripted:alpha",) * 2]


async def test_what_is_refused() -> None:
    """A text that names no model is refused when it is set, and what was selected stays; so is a disposed agent."""
    async with stage() as play:
        selection = ModelSelection("scripted:m2")
        with pytest.raises(InvalidModelError):
            selection.current = "m3"
        with pytest.raises(TypeError, match="a ModelConfig"):
            selection.current = 3  # type: ignore[assignment]
        assert str(selection.current) == "scripted:m2"
        assert repr(selection) == "<ModelSelection: scripted:m2>"
        agent = await play.agent()
        await agent.dispose()
        with pytest.raises(InactiveContextError):
            install_model_selection(agent, selection)


async def test_what_is_no_selection() -> None:
    """It is refused when it is installed, and nothing of it stays."""
    async with stage("Fine.") as play:
        agent = await play.agent()
        with pytest.raises(TypeError, match="an agent goes by a ModelSelection, not a str"):
            install_model_selection(agent, "scripted:m2")  # type: ignore[arg-type]
        assert (await agent.run("Hi")).text == "Fine."


async def test_a_child_is_made_with_what_its_parent_has_selected() -> None:
    """With the settings that the parent's request would have; later changes are the parent's alone."""
    async with stage(lambda request: "Fine.", persona=PERSONA) as play:
        parent = await play.agent(model=ModelConfig("scripted", "m1", {"temperature": 0.5, "reasoning_effort": "low"}))
        selection = ModelSelection("scripted:m2")
        install_model_selection(parent, selection)
        child = await parent.spawn("child")
        selection.current = "scripted:m3"
        await child.run("Hi")
        await parent.run("Hi")
        assert told(play) == [("scripted:m2", "scripted:m2"), ("scripted:m3", "scripted:m3")]
        assert settings(play) == [{"temperature": 0.5}] * 2
        selection.current = None
        assert (await parent.spawn("other")).model == parent.model
        bare = await play.agent(model=None)
        install_model_selection(bare, ModelSelection("scripted:m4"))
        assert str((await bare.spawn("third")).model) == "scripted:m4"
