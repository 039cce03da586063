"""Requests in neutral form: their canonical bytes, and how a model is named."""

import json

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


def test_settings_are_detached() -> None:
    """Settings are checked to be JSON, and cannot be changed from outside."""
    settings = {"stop": ["a"]}
    config = ModelConfig.parse("openai:gpt-5", settings)
    settings["stop"].append("b")
    assert config.settings == {"stop": ["a"]}
    with pytest.raises(NotJsonError, match=r"\.stop"):
        ModelConfig.parse("openai:gpt-5", {"stop": {"a"}})
