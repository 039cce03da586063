"""Requests in neutral form: their canonical bytes, and how a model is named."""

import json
from dataclasses import replace
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies import CHARACTERS, json_objects

from foreword import NotJsonError, Origin, ToolSchema
from foreword.errors import InvalidModelError
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage, message_from_json
from foreword.wire.request import ModelConfig, ModelRequest

texts = st.text(CHARACTERS, max_size=8)
messages = st.one_of(
    st.builds(UserMessage, texts),
    st.builds(AssistantMessage, texts, st.lists(st.builds(ToolCall, texts, texts, texts), max_size=2).map(tuple)),
    st.builds(ToolMessage, texts, texts, texts, st.booleans()),
)


@given(messages)
def test_a_message_comes_back_from_its_json(message: UserMessage | AssistantMessage | ToolMessage) -> None:
    """`message_from_json` is the inverse of `to_json`, also through bytes."""
    assert message_from_json(json.loads(json.dumps(message.to_json()))) == message


@given(texts, st.lists(messages, max_size=3), json_objects, json_objects)
def test_canonical_bytes(system: str, history: list[UserMessage], parameters: dict, settings: dict) -> None:
    """The bytes are JSON with the four keys in order and no blanks, and hold all of the request, key order included."""
    tool = ToolSchema("look_up", "Looks up.", parameters)
    request = ModelRequest(system, (tool,), tuple(history), ModelConfig("openai", "gpt-5", settings))
    told = json.loads(request.canonical())
    assert list(told) == ["system", "tools", "messages", "config"]
    assert told == request.to_json()
    assert list(told["tools"][0]["parameters"]) == list(parameters)
    assert list(told["config"]["settings"]) == list(settings)
    assert json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() == request.canonical()


def test_origins_are_no_part_of_a_request() -> None:
    """Who brought the tools changes neither what is sent nor whether two requests are equal."""
    bare = ModelRequest("", (ToolSchema("t", "", {}),), (), ModelConfig("openai", "gpt-5"))
    known = ModelRequest("", bare.tools, (), bare.config, origins=(Origin("files"),))
    assert known == bare
    assert known.canonical() == bare.canonical()
    assert repr(known) == repr(bare)


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("openai:gpt-5", "openai", "gpt-5"),
        ("mine:ft:gpt-4o:acme", "mine", "ft:gpt-4o:acme"),
        ("local:org/a model", "local", "org/a model"),
    ],
)
def test_a_models_name(text: str, provider: str, model: str) -> None:
    """The first colon parts provider and model."""
    assert ModelConfig.parse(text) == ModelConfig(provider, model)
    assert str(ModelConfig.parse(text)) == text


@pytest.mark.parametrize("text", ["", "gpt-5", ":gpt-5", "openai:", "openai: gpt-5", " openai:gpt-5", "openai:gpt-5\n"])
def test_no_models_name(text: str) -> None:
    """Anything else is an error that shows how to write it."""
    with pytest.raises(InvalidModelError, match="write provider:model"):
        ModelConfig.parse(text)


@pytest.mark.parametrize("given", [5, None, b"gpt-5", ["gpt-5"]])
def test_a_name_that_is_no_text(given: Any) -> None:
    """What the log could not give back is refused where it is made, by the part that is wrong."""
    with pytest.raises(TypeError, match=r"the model of a ModelConfig is its name as a text, not an? "):
        ModelConfig("openai", given)
    with pytest.raises(TypeError, match="the provider of a ModelConfig"):
        ModelConfig(given, "gpt-5")
    with pytest.raises(TypeError, match="the model of a ModelConfig"):
        replace(ModelConfig("openai", "gpt-5"), model=given)


def test_a_name_that_no_log_can_hold() -> None:
    """Half a character cannot be written."""
    with pytest.raises(NotJsonError, match="the model of a ModelConfig holds a lone surrogate at character 3"):
        ModelConfig("openai", "gpt\ud800")
    with pytest.raises(NotJsonError, match="the provider of a ModelConfig"):
        ModelConfig.parse("\ud800:gpt-5")


def test_a_name_of_an_enumeration() -> None:
    """A subclass of str is kept as the plain string that the log gives back."""

    class Models(StrEnum):
        SMALL = "gpt-5-mini"

    config = ModelConfig("openai", Models.SMALL)
    assert type(config.model) is str
    assert config == ModelConfig("openai", "gpt-5-mini")


def test_settings_are_detached() -> None:
    """Settings are checked to be JSON, and cannot be changed from outside."""
    settings = {"stop": ["a"]}
    config = ModelConfig.parse("openai:gpt-5", settings)
    settings["stop"].append("b")
    assert config.settings == {"stop": ["a"]}
    with pytest.raises(NotJsonError, match=r"\.stop"):
        ModelConfig.parse("openai:gpt-5", {"stop": {"a"}})
