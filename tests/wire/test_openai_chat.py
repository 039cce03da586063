"""The body of a chat-completions request."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies import CHARACTERS, json_objects

from foreword import EntryRef, SystemPrompt, ToolProviderResult, ToolSchema
from foreword.errors import (
    InvalidModelError,
    InvalidModelSettingError,
    InvalidToolNameError,
    MisplacedInstructionsError,
    ToolNameCollisionError,
)
from foreword.wire import openai_chat
from foreword.wire.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from foreword.wire.profiles import COMPATIBLE, DEEPSEEK, OPENAI, ToolNameRule, profile_of
from foreword.wire.request import ModelConfig, ModelRequest, canonical_json

texts = st.text(CHARACTERS, max_size=8)


def made(
    system: str = "",
    tools: tuple[ToolSchema, ...] = (),
    messages: tuple[Message, ...] = (),
    *,
    model: str = "openai:gpt-4o",
    **settings: Any,
) -> dict[str, Any]:
    """The body of a request."""
    return openai_chat.body(ModelRequest(system, tools, messages, ModelConfig.parse(model, settings)))


# The system text


@given(texts.filter(bool), st.lists(st.builds(UserMessage, texts), max_size=3))
def test_the_system_text_is_the_first_message(system: str, messages: list[UserMessage]) -> None:
    """There is exactly one system or developer message, at index 0, and it holds the text as it is."""
    told = made(system, messages=tuple(messages))["messages"]
    assert told[0] == {"role": "system", "content": system}
    assert [each["role"] for each in told[1:]] == ["user"] * len(messages)


def test_an_empty_system_text_is_no_message() -> None:
    """An empty text makes no message, and no tools make no key."""
    assert made(messages=(UserMessage("Hi."),)) == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "Hi."}],
    }


@pytest.mark.parametrize(
    ("model", "role"),
    [
        ("openai:gpt-4o", "system"),
        ("openai:o1-mini", "system"),
        ("openai:o1", "developer"),
        ("openai:o3-mini", "developer"),
        ("openai:gpt-5", "developer"),
        ("openai:gpt-5-mini", "developer"),
        ("deepseek:gpt-5", "system"),
        ("mine:o3", "system"),
    ],
)
def test_whose_role_it_has(model: str, role: str) -> None:
    """Reasoning models of OpenAI get a developer message, everybody else a system message."""
    assert made("Be brief.", model=model)["messages"] == [{"role": role, "content": "Be brief."}]


# Tools


@given(
    st.lists(
        st.builds(ToolSchema, st.from_regex(r"\A[a-zA-Z0-9_-]{1,64}\Z"), texts, json_objects),
        max_size=4,
        unique_by=lambda tool: tool.name,
    )
)
def test_tools_keep_their_order_and_bytes(tools: list[ToolSchema]) -> None:
    """Tools stand in the order of the assembly, each schema with its keys in the order in which they were given."""
    told = made(tools=tuple(tools)).get("tools", [])
    assert [each["function"]["name"] for each in told] == [tool.name for tool in tools]
    for each, tool in zip(told, tools, strict=True):
        assert each["type"] == "function"
        assert each["function"]["description"] == tool.description
        assert canonical_json(each["function"]["parameters"]) == canonical_json(tool.parameters)


def test_a_body_is_free_to_be_changed() -> None:
    """What is given shares nothing with the assembly's schemas."""
    tool = ToolSchema("look_up", "", {"properties": {"order": {"type": "integer"}}})
    told = made(tools=(tool,), metadata={"team": ["a"]})
    told["tools"][0]["function"]["parameters"]["properties"]["order"]["type"] = "string"
    told["metadata"]["team"].append("b")
    assert tool.parameters["properties"] == {"order": {"type": "integer"}}


@pytest.mark.parametrize("name", ["files.read", "ä", "a b", "x" * 65, "read\n", "mcp/read"])
def test_a_name_that_the_provider_refuses(name: str) -> None:
    """A tool's name is held against the provider's rules; the error names owner, place, rule and way out."""
    prompt = SystemPrompt()
    prompt.owner("files").tools(lambda: ToolProviderResult([ToolSchema(name, "", {})]))
    rendering = prompt.render_sync()
    request = ModelRequest("", rendering.tools, (), ModelConfig("openai", "gpt-4o"), origins=rendering.tool_origins)
    with pytest.raises(InvalidToolNameError, match=r"files.* 1 to 64 characters.*rename the tool") as caught:
        openai_chat.body(request)
    assert caught.value.tool.owner == "files"
    assert "test_openai_chat.py" in str(caught.value.tool.source)


def test_two_tools_of_one_name() -> None:
    """Two tools with one name on the wire are an error that names both owners."""
    prompt = SystemPrompt()
    prompt.owner("web").tools([ToolSchema("search", "The web.", {})])
    prompt.owner("files").tools([ToolSchema("search", "Files.", {})])
    with pytest.raises(ToolNameCollisionError) as caught:
        openai_chat.request(prompt.render_sync(), [], config="openai:gpt-4o")
    assert {caught.value.first.owner, caught.value.second.owner} == {"web", "files"}
    assert "web" in str(caught.value)
    assert "files" in str(caught.value)


def test_names_are_sent_as_they_are() -> None:
    """Names that differ in a dash only are two names: nothing is normalised on the way."""
    tools = (ToolSchema("search-a", "", {}), ToolSchema("search_a", "", {}))
    told = made(tools=tools)["tools"]
    assert [each["function"]["name"] for each in told] == ["search-a", "search_a"]


def test_an_owner_that_nobody_knows() -> None:
    """Without origins, the error says so."""
    with pytest.raises(InvalidToolNameError) as caught:
        made(tools=(ToolSchema("a.b", "", {}),))
    assert caught.value.tool == EntryRef("tool", "a.b", "an unknown owner")


# Messages


def test_messages() -> None:
    """Each kind of message in the provider's spelling; a model's arguments stay as it wrote them."""
    calls = (ToolCall("c1", "look_up", '{"order": 4711'), ToolCall("c2", "clock", ""))
    history = (
        UserMessage("Why is it late?"),
        AssistantMessage("", calls),
        ToolMessage("c1", "look_up", "no such order", is_error=True),
        ToolMessage("c2", "clock", "10:00"),
        AssistantMessage("I do not know."),
    )
    assert made(messages=history)["messages"] == [
        {"role": "user", "content": "Why is it late?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"order": 4711'}},
                {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "no such order"},
        {"role": "tool", "tool_call_id": "c2", "content": "10:00"},
        {"role": "assistant", "content": "I do not know."},
    ]


@pytest.mark.parametrize(
    ("name", "sent"), [("we ird/ü.name", "we_ird___name"), ("", "_"), ("n" * 500, "n" * 64), ("look-up_2", "look-up_2")]
)
def test_names_that_a_model_made_up(name: str, sent: str) -> None:
    """A call of a tool that there is not goes back by a name that the provider takes."""
    [told] = made(messages=(AssistantMessage("", (ToolCall("c", name, "{}"),)),))["messages"]
    assert told["tool_calls"][0]["function"]["name"] == sent


def test_names_that_a_server_takes() -> None:
    """What a server takes as the name of a tool goes back as it is."""
    dotted = replace(COMPATIBLE, tool_names=ToolNameRule(r"[a-z.]+", "a name has letters and dots"))
    request = ModelRequest("", (), (AssistantMessage("", (ToolCall("c", "a.b", "{}"),)),), ModelConfig("mine", "m"))
    [told] = openai_chat.body(request, profile=dotted)["messages"]
    assert told["tool_calls"][0]["function"]["name"] == "a.b"


# Settings


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("openai:gpt-5", "max_completion_tokens"),
        ("deepseek:deepseek-chat", "max_tokens"),
        ("mine:llama", "max_tokens"),
    ],
)
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_limit_has_the_providers_name(model: str, key: str, name: str) -> None:
    """The limit of tokens goes by the name that the provider takes, whichever of the two it was given by."""
    told = made(model=model, **{name: 100})
    assert told[key] == 100
    assert len(told) == 3


def test_other_settings_are_passed_on() -> None:
    """Settings come last, in their order, by their own names; so do those that we do not know."""
    told = made(stop=["END"], temperature=0.5, prompt_cache_key="k", verbosity=None)
    assert list(told.items())[2:] == [
        ("stop", ["END"]),
        ("temperature", 0.5),
        ("prompt_cache_key", "k"),
        ("verbosity", None),
    ]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"messages": []}, "setting messages of model openai:gpt-4o is the history"),
        ({"model": "gpt-5"}, "stands in the config itself"),
        ({"tools": []}, "are contributed"),
        ({"functions": []}, "the old way"),
        ({"stream": True}, "whoever sends the request"),
        ({"stream_options": {}}, "whoever sends the request"),
        ({"n": 2}, "several answers"),
        ({"max_tokens": 0}, "positive number"),
        ({"max_tokens": True}, "positive number"),
        ({"max_completion_tokens": "100"}, "positive number"),
        ({"max_tokens": 1, "max_completion_tokens": 1}, "both are given"),
        ({"temperature": "hot"}, "give a number"),
        ({"top_p": False}, "give a number"),
        ({"stop": [1]}, "give a text or a list of texts"),
        ({"reasoning_effort": 3}, "give a word"),
    ],
)
def test_a_setting_that_cannot_be(settings: dict[str, Any], why: str) -> None:
    """What is no setting, or of the wrong type, is refused by name, with what to do instead."""
    with pytest.raises(InvalidModelSettingError, match=why):
        openai_chat.body(ModelRequest("", (), (), ModelConfig("openai", "gpt-4o", settings)))


def test_profiles_by_name() -> None:
    """A provider's name brings its profile; one that is not known is taken for compatible."""
    assert [profile_of(name) for name in ("openai", "deepseek", "mine")] == [OPENAI, DEEPSEEK, COMPATIBLE]
    assert len({OPENAI, DEEPSEEK, COMPATIBLE}) == 3


# For those who use the SDK themselves


def test_what_an_sdk_takes() -> None:
    """A rendering, the user's own history and a model make the keyword arguments; runtime contexts come last."""
    prompt = SystemPrompt(persona="Be brief.", include_harness_identity=False)
    prompt.context("clock", "It is 10:00.", order=1)
    prompt.tools([ToolSchema("clock", "Tells the time.", {"type": "object"})])
    rendering = prompt.render_sync()
    mine = {"role": "user", "content": [{"type": "text", "text": "Hi."}]}
    told = openai_chat.request(rendering, [mine, AssistantMessage("Hello.")], config="openai:gpt-5")
    assert told == {
        "model": "gpt-5",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            mine,
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": rendering.snapshot},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "clock", "description": "Tells the time.", "parameters": {"type": "object"}},
            }
        ],
    }
    assert "It is 10:00." in rendering.snapshot
    assert told["messages"][1] is mine
    assert json.dumps(told)


def test_several_sections_are_one_message() -> None:
    """Three sections make one system message at index 0, with the text of the rendering; no contexts, no message."""
    prompt = SystemPrompt(include_harness_identity=False)
    for order, text in enumerate(("One.", "Two.", "Three.")):
        prompt.section(text, text, order=order)
    told = openai_chat.request(prompt.render_sync(), [], config=ModelConfig("mine", "llama", {"seed": 1}))
    assert told == {"model": "llama", "messages": [{"role": "system", "content": "One.\n\nTwo.\n\nThree."}], "seed": 1}


class Said:
    """A message as an SDK gives it."""

    def __init__(self, role: str) -> None:
        self.role = role


def test_an_sdks_own_messages_pass() -> None:
    """Messages that the SDK gave go back to it as they are."""
    answer = Said("assistant")
    told = openai_chat.request(SystemPrompt().render_sync(), [answer], config="openai:gpt-4o")
    assert told["messages"][-1] is answer


@pytest.mark.parametrize("message", [{"role": "system", "content": "x"}, {"role": "developer"}, Said("system")])
def test_a_second_system_message_is_refused(message: object) -> None:
    """A history that brings a system message of its own is an error, which says to make it a section."""
    with pytest.raises(MisplacedInstructionsError, match=r"message 1 of the history.*section"):
        openai_chat.request(SystemPrompt().render_sync(), [UserMessage("Hi."), message], config="openai:gpt-4o")


def test_a_model_without_provider() -> None:
    """The config must name a provider."""
    with pytest.raises(InvalidModelError, match="gpt-4o"):
        openai_chat.request(SystemPrompt().render_sync(), [], config="gpt-4o")
