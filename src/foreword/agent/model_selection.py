"""Model selection: a holder that somebody changes while an agent runs, and what makes the agent go by it.

    selection = ModelSelection()
    install_model_selection(agent, selection)
    selection.current = "openai:gpt-5"          # counts from the next step

What is selected is read once a step, when its context is made (`assemble_context_for`), and travels in
``context.model``. The variables ``provider`` and ``model`` and the request's route come from there, so they agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from foreword.errors import with_article
from foreword.kernel.effects import Registration
from foreword.prompt.context import ModelRef
from foreword.prompt.events import SYSTEM_PROMPT_ASSEMBLE
from foreword.wire.request import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from foreword.agent.agent import Agent
    from foreword.agent.events import RequestProposed
    from foreword.prompt.assembly import PromptAssembly
    from foreword.prompt.context import AssembleContext

__all__ = ["ModelSelection", "SelectedModel", "current_model", "install_model_selection", "model_config"]

_EFFORT = "reasoning_effort"  # belongs to a model: it is never inherited by another one


def model_config(model: str | ModelConfig) -> ModelConfig:
    """A model as a config: ``"openai:gpt-5"`` stands for one without settings.

    Raises:
        InvalidModelError: the text is not "provider:model".
        TypeError: it is neither a text nor a config.
    """
    if isinstance(model, str):
        return ModelConfig.parse(model)
    if not isinstance(cast("object", model), ModelConfig):
        raise TypeError(f'a model is "provider:model" or a ModelConfig, not {with_article(type(model).__name__)}')
    return model


class ModelSelection:
    """Which model is wanted next; None for the agent's own.

    Args:
        current: to begin with.
    """

    __slots__ = ("_current",)

    def __init__(self, current: str | ModelConfig | None = None) -> None:
        self._current = None if current is None else model_config(current)

    @property
    def current(self) -> ModelConfig | None:
        """The selected model; set it as ``"provider:model"``, as a `ModelConfig`, or to None.

        Raises:
            InvalidModelError: the text is not "provider:model"; what was selected stays.
        """
        return self._current

    @current.setter
    def current(self, model: str | ModelConfig | None) -> None:
        self._current = None if model is None else model_config(model)

    def __repr__(self) -> str:
        return f"<ModelSelection: {self._current or 'none'}>"


class SelectedModel(ModelRef):
    """The model of a context, read from a selection."""

    __slots__ = ("config", "selection")

    def __init__(self, selection: ModelSelection, config: ModelConfig) -> None:
        super().__init__(config.provider, config.model)
        self.selection, self.config = selection, config


def install_model_selection(agent: Agent, selection: ModelSelection) -> Registration:
    """Have an agent go by a selection. Of several, the one that was installed last and selects something counts.

    The request keeps the settings that it would have without, except for the model's own (``reasoning_effort``), and
    takes over those of the selected config. A listener that was registered earlier is further out, and may still
    change variables and route.

    Returns:
        The registration of the two listeners that this takes; closing it removes both.

    Raises:
        TypeError: it is no selection.
        InactiveContextError: the agent was disposed.
    """
    if not isinstance(cast("object", selection), ModelSelection):
        raise TypeError(f"an agent goes by a ModelSelection, not {with_article(type(selection).__name__)}")
    from foreword.agent.events import AGENT_REQUEST  # here, since those events know the agent, which knows selections

    async def tell_variables(
        assembly: PromptAssembly, context: AssembleContext, call_next: Callable[[], Awaitable[PromptAssembly]]
    ) -> PromptAssembly:
        result = await call_next()
        selected = _selected_by(selection, context)
        if selected is not None:
            result.variables["provider"], result.variables["model"] = selected.provider, selected.model
        return result

    async def route(proposed: RequestProposed, call_next: Callable[[], Awaitable[ModelConfig]]) -> ModelConfig:
        result = await call_next()
        selected = _selected_by(selection, proposed.context)
        return result if selected is None else _rerouted(result, selected)

    listeners = [agent.ctx.on(SYSTEM_PROMPT_ASSEMBLE, tell_variables), agent.ctx.on(AGENT_REQUEST, route)]

    def remove() -> None:
        agent.selections.remove(selection)
        for listener in listeners:
            listener.close()

    registration = Registration(f"model selection of {agent.name}", agent.ctx.fiber, remove)
    agent.ctx.fiber.add(registration.in_turn)
    agent.selections.append(selection)
    return registration


def current_model(agent: Agent) -> ModelConfig | None:
    """The model that an agent would ask now, listeners aside: what is selected, else its own."""
    for selection in reversed(agent.selections):
        if (selected := selection.current) is not None:
            return selected if agent.model is None else _rerouted(agent.model, selected)
    return agent.model


def _selected_by(selection: ModelSelection, context: AssembleContext) -> ModelConfig | None:
    model = context.model
    return model.config if isinstance(model, SelectedModel) and model.selection is selection else None


def _rerouted(config: ModelConfig, selected: ModelConfig) -> ModelConfig:
    kept = {name: value for name, value in config.settings.items() if name != _EFFORT}
    return ModelConfig(selected.provider, selected.model, {**kept, **selected.settings})
