"""Who serves which provider."""

import pytest

from foreword import Context, InactiveContextError, plugin
from foreword.agent.models import ModelAdapters
from foreword.errors import DuplicateAdapterError, InvalidModelSettingError, ModelError, UnknownProviderError
from foreword.testing import ScriptedModel
from foreword.wire.request import ModelConfig


def test_an_adapter_is_found_by_its_provider() -> None:
    """A registered adapter serves the provider of its name until the registration is closed; closing twice is once."""
    adapters = ModelAdapters()
    model = ScriptedModel()
    registration = adapters.register(model)
    assert adapters.get("scripted") is model
    assert adapters.resolve(ModelConfig.parse("scripted:any")) == (model, ModelConfig("scripted", "any"))
    assert adapters.names == ("scripted",)
    registration.close()
    registration.close()
    assert adapters.names == ()
    with pytest.raises(UnknownProviderError, match="there are no known providers"):
        adapters.get("scripted")


def test_a_misspelt_provider() -> None:
    """An unknown provider is an error with the nearest known one, which a plain `except LookupError` catches."""
    adapters = ModelAdapters(ScriptedModel(name="openai"), ScriptedModel(name="deepseek"))
    with pytest.raises(LookupError, match=r'"opnai"; did you mean "openai"\? known providers: deepseek, openai'):
        adapters.get("opnai")


def test_one_adapter_a_provider() -> None:
    """A second adapter for a provider is refused; the error names both places, and the first one stays."""
    first = ScriptedModel()
    adapters = ModelAdapters(first)
    with pytest.raises(DuplicateAdapterError) as caught:
        adapters.register(ScriptedModel())
    assert adapters.get("scripted") is first
    for ref in (caught.value.adapter, caught.value.holder):
        assert "test_registry.py" in str(ref.source)
        assert str(ref) in str(caught.value)
    assert caught.value.adapter.source != caught.value.holder.source


def test_an_old_undo_takes_no_namesake() -> None:
    """A registration that was closed never takes away the adapter that came after it."""
    adapters = ModelAdapters()
    old = adapters.register(ScriptedModel())
    old.close()
    new = ScriptedModel()
    adapters.register(new)
    old.close()
    assert adapters.get("scripted") is new


def test_what_is_no_adapter() -> None:
    """Something else is refused, with what an adapter has."""
    with pytest.raises(TypeError, match="name, version, resolve, body and stream"):
        ModelAdapters().register(object())  # type: ignore[arg-type]


class Picky(ScriptedModel):
    """Refuses every config."""

    def resolve(self, config: ModelConfig) -> ModelConfig:
        raise InvalidModelSettingError(str(config), "temperature", "is too hot")


def test_the_adapter_has_its_say() -> None:
    """A config that the adapter refuses is refused."""
    with pytest.raises(ModelError, match="too hot"):
        ModelAdapters(Picky()).resolve(ModelConfig.parse("scripted:any"))


@pytest.mark.anyio
async def test_a_plugins_adapter_goes_with_it() -> None:
    """Under a kernel, an adapter belongs to the plugin that registers it; the plugin's own adapters see it as well."""
    mine = ScriptedModel(name="mine")

    @plugin(name="acme")
    def acme(ctx: Context, adapters: ModelAdapters) -> None:
        adapters.register(mine)

    async with Context() as ctx:
        await ctx.mount(ModelAdapters).ready()
        adapters = ctx.require(ModelAdapters)
        fiber = await ctx.mount(acme).ready()
        assert adapters.get("mine") is mine
        with pytest.raises(DuplicateAdapterError, match="of acme"):
            adapters.register(ScriptedModel(name="mine"))
        bound = fiber.ctx.require(ModelAdapters)
        await fiber.dispose()
        assert adapters.names == ()
        with pytest.raises(InactiveContextError):
            bound.register(mine)
        assert adapters.names == ()
