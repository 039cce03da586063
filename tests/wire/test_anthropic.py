"""The body of a request in Anthropic's messages format."""

import json
from dataclasses import replace
from itertools import pairwise
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
from foreword.wire import anthropic
from foreword.wire.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from foreword.wire.profiles import ANTHROPIC, COMPATIBLE_MESSAGES, MessagesProfile, messages_profile_of
from foreword.wire.request import ModelConfig, ModelRequest, canonical_json

MARK = {"type": "ephemeral"}
MODEL = "anthropic:claude-sonnet-4-5"

texts = st.text(st.one_of(CHARACTERS, st.sampled_from(" \n\t")), max_size=8)
calls = st.builds(ToolCall, texts, texts, st.one_of(texts, json_objects.map(json.dumps)))
messages = st.lists(
    st.one_of(
        st.builds(UserMessage, texts),
        st.builds(AssistantMessage, texts, st.lists(calls, max_size=2).map(tuple)),
        st.builds(ToolMessage, texts, texts, texts, st.booleans()),
    ),
    max_size=6,
)
tools = st.lists(
    st.builds(ToolSchema, st.from_regex(r"\A[a-zA-Z0-9_-]{1,128}\Z"), texts, json_objects),
    max_size=4,
    unique_by=lambda tool: tool.name,
)


def made(
    system: str = "",
    tools: tuple[ToolSchema, ...] = (),
    messages: tuple[Message, ...] = (),
    *,
    stable_head: int = 0,
    profile: MessagesProfile | None = None,
    model: str = MODEL,
    **settings: Any,
) -> dict[str, Any]:
    """The body of a request."""
    config = ModelConfig.parse(model, settings)
    return anthropic.body(ModelRequest(system, tools, messages, config, stable_head=stable_head), profile=profile)


def marks(value: object) -> int:
    """How many marks there are, wherever they are."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(marks, value.values()))
    return sum(map(marks, value)) if isinstance(value, list) else 0


def unmarked(value: Any) -> Any:
    """The same without marks."""
    if isinstance(value, dict):
        return {key: unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


# The system text


@given(texts, st.integers(0, 10))
def test_the_blocks_make_up_the_text(system: str, stable_head: int) -> None:
    """The system blocks, joined, are the text; each says something; a blank text has no system key at all."""
    told = made(system, stable_head=stable_head)
    if not system.strip():
        assert "system" not in told
        return
    assert "".join(block["text"] for block in told["system"]) == system
    assert all(block["text"].strip() for block in told["system"])


def test_six_fixed_sections_and_tools() -> None:
    """However many sections there are, at most four places of tools and system are marked: by default two."""
    prompt = SystemPrompt(include_harness_identity=False)
    for order in range(6):
        prompt.section(f"s{order}", f"Section {order}.", order=order)
    prompt.section("empty", "", order=3)
    prompt.section("blank", " \n ", order=4)
    prompt.tools([ToolSchema("a", "", {}), ToolSchema("b", "", {})])
    rendering = prompt.render_sync()
    told = anthropic.request(rendering, [UserMessage("Hi.")], config=MODEL)
    assert [block["text"] for block in told["system"]] == [rendering.text]
    assert told["system"][0]["cache_control"] == MARK
    assert ["cache_control" in tool for tool in told["tools"]] == [False, True]
    assert marks([told["system"], told["tools"]]) == 2
    assert marks(told["messages"]) == 1
    greedy = replace(ANTHROPIC, head_marks=9, message_marks=9)
    assert marks(anthropic.request(rendering, [UserMessage("Hi.")] * 3, config=MODEL, profile=greedy)) <= 4


def test_where_the_stable_head_ends() -> None:
    """What is the same in every step is a block of its own with a mark, and so is the end of the rest."""
    prompt = SystemPrompt(include_harness_identity=False)
    prompt.section("a", "A", order=1)
    prompt.section("b", "B", order=2)
    prompt.section("c", lambda: "C", order=3)
    prompt.section("d", "D", order=4)
    told = anthropic.request(prompt.render_sync(), [], config=MODEL)
    assert told["system"] == [
        {"type": "text", "text": "A\n\nB", "cache_control": MARK},
        {"type": "text", "text": "\n\nC\n\nD", "cache_control": MARK},
    ]


def test_nothing_but_blank_sections() -> None:
    """Where all sections are blank, there is no system key, and nothing but the tools to mark."""
    prompt = SystemPrompt(include_harness_identity=False)
    prompt.section("empty", "", order=1)
    prompt.section("blank", " \n\t", order=2)
    prompt.tools([ToolSchema("a", "", {})])
    told = anthropic.request(prompt.render_sync(), [], config=MODEL)
    assert "system" not in told
    assert marks(told) == 1
    assert made() == {"model": "claude-sonnet-4-5", "max_tokens": 32_000, "messages": []}


# Marks


@given(texts, tools, messages, st.integers(0, 10), st.integers(0, 6), st.integers(0, 6))
def test_never_more_marks_than_the_server_takes(
    system: str, tools: list[ToolSchema], history: list[Message], stable_head: int, head: int, last: int
) -> None:
    """Whatever the request and the profile say, there are four marks at most, none of them on an empty block."""
    profile = replace(ANTHROPIC, head_marks=head, message_marks=last)
    told = made(system, tuple(tools), tuple(history), stable_head=stable_head, profile=profile)
    assert marks(told) <= 4
    assert marks([told.get("system", []), told.get("tools", [])]) <= head
    assert marks(told["messages"]) <= last
    for turn in told["messages"]:
        for block in turn["content"]:
            assert "cache_control" not in block or (block.get("text") or block.get("content"))


def test_the_last_turns_of_the_user_are_marked() -> None:
    """The last two turns of the user end in a mark: where the next request goes on, and where the last one ended."""
    history = (UserMessage("1"), AssistantMessage("2"), UserMessage("3"), AssistantMessage("4"), UserMessage("5"))
    told = made(messages=history)["messages"]
    assert [marks(turn) for turn in told] == [0, 0, 1, 0, 1]
    assert told[-1]["content"] == [{"type": "text", "text": "5", "cache_control": MARK}]


def test_a_profile_says_how() -> None:
    """How many marks there are, where, and how long they hold, is data."""
    tool = ToolSchema("a", "", {})
    history = (UserMessage("Hi."),)
    none = replace(ANTHROPIC, head_marks=0, message_marks=0)
    assert marks(made("A\n\nB", (tool,), history, profile=none)) == 0
    tools_first = replace(ANTHROPIC, head_marks=1, mark_places=("tools", "system"), lifetime="1h")
    told = made("A\n\nB", (tool,), history, profile=tools_first)
    assert "cache_control" not in told["system"][0]
    assert told["tools"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    three = replace(ANTHROPIC, head_marks=3, message_marks=2)
    told = made("A\n\nB", (tool,), (*history, AssistantMessage("a"), *history), stable_head=1, profile=three)
    assert (marks(told["system"]), marks(told["tools"]), marks(told["messages"])) == (2, 1, 1)


def test_the_server_marks_the_end_itself() -> None:
    """Where a setting asks the server to mark the last block, that counts, and no message is marked here."""
    told = made("A\n\nB", (ToolSchema("a", "", {}),), (UserMessage("Hi."),), cache_control=MARK)
    assert (marks(told["system"]), marks(told["tools"]), marks(told["messages"])) == (1, 1, 0)
    assert told["cache_control"] == MARK


# Tools


@given(tools)
def test_tools_keep_their_order_and_bytes(tools: list[ToolSchema]) -> None:
    """Tools stand in the order of the assembly, each schema with its keys in the order in which they were given."""
    told = unmarked(made(tools=tuple(tools)).get("tools", []))
    assert [each["name"] for each in told] == [tool.name for tool in tools]
    for each, tool in zip(told, tools, strict=True):
        assert each.get("description", "") == tool.description
        expected = dict(tool.parameters) if "type" in tool.parameters else {"type": "object", **tool.parameters}
        assert canonical_json(each["input_schema"]) == canonical_json(expected)


def test_a_body_is_free_to_be_changed() -> None:
    """What is given shares nothing with the assembly's schemas."""
    tool = ToolSchema("look_up", "", {"properties": {"order": {"type": "integer"}}})
    told = made(tools=(tool,), metadata={"user_id": "a"})
    told["tools"][0]["input_schema"]["properties"]["order"]["type"] = "string"
    told["metadata"]["user_id"] = "b"
    assert tool.parameters["properties"] == {"order": {"type": "integer"}}


@pytest.mark.parametrize("name", ["files.read", "ä", "a b", "x" * 129, "read\n", "mcp/read"])
def test_a_name_that_the_provider_refuses(name: str) -> None:
    """A tool's name is held against the provider's rules; the error names owner, place, rule and way out."""
    prompt = SystemPrompt()
    prompt.owner("files").tools(lambda: ToolProviderResult([ToolSchema(name, "", {})]))
    rendering = prompt.render_sync()
    request = ModelRequest("", rendering.tools, (), ModelConfig.parse(MODEL), origins=rendering.tool_origins)
    with pytest.raises(InvalidToolNameError, match=r"files.* 1 to 128 characters.*rename the tool") as caught:
        anthropic.body(request)
    assert caught.value.tool.owner == "files"
    with pytest.raises(InvalidToolNameError) as bare:
        made(tools=(ToolSchema("a.b", "", {}),))
    assert bare.value.tool == EntryRef("tool", "a.b", "an unknown owner")


def test_two_tools_of_one_name() -> None:
    """Two tools with one name on the wire are an error that names both owners."""
    prompt = SystemPrompt()
    prompt.owner("web").tools([ToolSchema("search", "The web.", {})])
    prompt.owner("files").tools([ToolSchema("search", "Files.", {})])
    with pytest.raises(ToolNameCollisionError, match="web") as caught:
        anthropic.request(prompt.render_sync(), [], config=MODEL)
    assert {caught.value.first.owner, caught.value.second.owner} == {"web", "files"}


# Messages


def test_messages() -> None:
    """Each kind of message in the provider's spelling: the results of one answer's calls are one turn of the user."""
    calls = (ToolCall("c1", "look_up", '{"order": 4711, "deep": {"a": [1.5]}}'), ToolCall("c2", "clock", ""))
    history = (
        UserMessage("Why is it late?"),
        AssistantMessage("Let me look.", calls),
        ToolMessage("c1", "look_up", "no such order", is_error=True),
        ToolMessage("c2", "clock", "10:00"),
        UserMessage("Hurry."),
        AssistantMessage("I do not know."),
    )
    assert unmarked(made(messages=history)["messages"]) == [
        {"role": "user", "content": [{"type": "text", "text": "Why is it late?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "c1", "name": "look_up", "input": {"order": 4711, "deep": {"a": [1.5]}}},
                {"type": "tool_use", "id": "c2", "name": "clock", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "no such order", "is_error": True},
                {"type": "tool_result", "tool_use_id": "c2", "content": "10:00"},
                {"type": "text", "text": "Hurry."},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "I do not know."}]},
    ]


@given(messages)
def test_turns(history: list[Message]) -> None:
    """Turns alternate, none is empty, no text is blank, and a turn's results of tools come first."""
    told = made(messages=tuple(history))["messages"]
    assert all(one["role"] != other["role"] for one, other in pairwise(told))
    for turn in told:
        assert turn["content"]
        kinds = [block["type"] for block in turn["content"]]
        assert kinds == sorted(kinds, key="tool_result".__ne__)
        assert all(block["text"].strip() for block in turn["content"] if block["type"] == "text")
    assert canonical_json(told)


@given(st.lists(st.tuples(texts, st.lists(texts, max_size=2), texts), max_size=4))
def test_a_longer_history_begins_with_the_shorter(steps: list[tuple[str, list[str], str]]) -> None:
    """What a step adds to the history changes nothing before it: the next request begins with the blocks of this one."""
    history: list[Message] = []
    before: list[tuple[str, Any]] = []
    for number, (said, called, asked) in enumerate(steps):
        ids = [f"c{number}-{at}" for at in range(len(called))]
        history += [
            AssistantMessage(said, tuple(ToolCall(each, "t", "{}") for each in ids)),
            *(ToolMessage(each, "t", text) for each, text in zip(ids, called, strict=True)),
            UserMessage(asked),
        ]
        told = unmarked(made(messages=tuple(history))["messages"])
        blocks = [(turn["role"], block) for turn in told for block in turn["content"]]
        assert blocks[: len(before)] == before
        before = blocks


def test_what_says_nothing_is_left_out() -> None:
    """Blank texts make no block, and messages without a block no turn; the turns on both sides become one."""
    history = (UserMessage("a"), AssistantMessage(" \n"), UserMessage(""), UserMessage("b"))
    assert unmarked(made(messages=history)["messages"]) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ]


def test_a_user_who_says_nothing() -> None:
    """A blank message of the user is told as such where the model would otherwise begin, or go on with its own words."""
    empty, no = [{"type": "text", "text": "(an empty message)"}], [{"type": "text", "text": "No."}]
    history = (UserMessage("  "), AssistantMessage("No."), UserMessage(""))
    told = unmarked(made(messages=history)["messages"])
    assert told == [
        {"role": "user", "content": empty},
        {"role": "assistant", "content": no},
        {"role": "user", "content": empty},
    ]
    assert unmarked(made(messages=history[:1])["messages"]) == told[:1]
    assert unmarked(made(messages=(AssistantMessage("No."),))["messages"]) == [told[1]]


def test_no_runtime_context() -> None:
    """Where there are no runtime contexts, nothing is said in their place."""
    rendering = SystemPrompt().render_sync()
    for answered in (AssistantMessage("No."), {"role": "assistant", "content": "No."}):
        assert len(anthropic.request(rendering, [UserMessage("a"), answered], config=MODEL)["messages"]) == 2
    assert anthropic.request(rendering, [], config=MODEL)["messages"] == []


def test_results_without_a_word() -> None:
    """A tool may answer nothing; an error must say something, and then says that it does not."""
    told = made(messages=(ToolMessage("c", "t", ""), ToolMessage("d", "t", " ", is_error=True)))["messages"]
    assert unmarked(told)[0]["content"] == [
        {"type": "tool_result", "tool_use_id": "c"},
        {"type": "tool_result", "tool_use_id": "d", "content": "The tool failed without a word.", "is_error": True},
    ]


@pytest.mark.parametrize(
    "arguments",
    ['{"order": 4711', "[1]", "null", '"x"', '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud83d"}', '{"a":' * 70 + "1" + "}" * 70,
     "[" * 100_000, '{"n": ' + "9" * 5000 + "}"],
)  # fmt: skip
def test_arguments_that_are_no_object(arguments: str) -> None:
    """What a model wrote in place of a JSON object is handed back to it as it wrote it."""
    [turn] = made(messages=(AssistantMessage("", (ToolCall("c", "t", arguments),)),))["messages"]
    assert turn["content"][0]["input"] == {"INVALID_JSON": arguments}
    assert canonical_json(turn)


def test_large_numbers_stay() -> None:
    """An id of 64 bits in a call's arguments is handed back as it was."""
    [turn] = made(messages=(AssistantMessage("", (ToolCall("c", "t", '{"id": 1234567890123456789}'),)),))["messages"]
    assert turn["content"][0]["input"] == {"id": 1234567890123456789}


def test_ids_and_names_of_other_providers() -> None:
    """An id that the format does not take is replaced, alike in call and result; another id stays another one."""
    history = (
        AssistantMessage("", (ToolCall("functions.t:0", "a.b", "{}"), ToolCall("functions.t:1", "", "{}"))),
        ToolMessage("functions.t:0", "a.b", "x"),
        ToolMessage("functions.t:1", "", "y"),
    )
    said, answered = made(messages=history)["messages"]
    ids = [block["id"] for block in said["content"]]
    assert ids == [block["tool_use_id"] for block in answered["content"]]
    assert len(set(ids)) == 2
    assert all(each.replace("_", "").isalnum() for each in ids)
    assert [block["name"] for block in said["content"]] == ["a_b", "_"]


def test_ids_that_come_again() -> None:
    """A server that counts its calls anew in every answer: each has an id of its own, and its result has the same."""
    history = (
        AssistantMessage("", (ToolCall("call_0", "t", "{}"), ToolCall("call_0", "u", "{}"))),
        ToolMessage("call_0", "t", "1"),
        ToolMessage("call_0", "u", "2"),
        AssistantMessage("", (ToolCall("call_0_3", "t", "{}"), ToolCall("call_0", "t", "{}"))),  # and then cancelled
        AssistantMessage("", (ToolCall("call_0", "t", "{}"),)),
        UserMessage("Hurry."),
        ToolMessage("call_0", "t", "5"),
        ToolMessage("call_0", "t", "5, too"),
        ToolMessage("of old", "t", "6"),
    )
    blocks = [block for turn in made(messages=history)["messages"] for block in turn["content"]]
    assert [block["id"] for block in blocks if "id" in block] == [
        "call_0",
        "call_0_2",
        "call_0_3",
        "call_0_4",
        "call_0_5",
    ]
    results = {block["content"]: block["tool_use_id"] for block in blocks if "tool_use_id" in block}
    assert results["1"] == "call_0"
    assert results["2"] == "call_0_2"
    assert results["5"] == results["5, too"] == "call_0_5"


@given(st.lists(st.lists(st.sampled_from(["a", "a_2", "a_3", "b!"]), max_size=3), max_size=5))
def test_each_call_has_an_id_of_its_own(answers: list[list[str]]) -> None:
    """Whatever ids a model gives, each call has its own, and its result follows it."""
    history: list[Message] = []
    for ids in answers:
        history += [AssistantMessage(".", tuple(ToolCall(each, "t", "{}") for each in ids)), UserMessage(".")]
        history += [ToolMessage(each, "t", "r") for each in ids]
    blocks = [block for turn in made(messages=tuple(history))["messages"] for block in turn["content"]]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert calls == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert len(set(calls)) == len(calls)


# Settings


def test_settings_have_the_providers_names() -> None:
    """Neutral settings go by the provider's names, others as they are; they come last, in their order."""
    told = made(stop="END", temperature=0.5, reasoning_effort="low", max_tokens=100, service_tier="auto")
    assert list(told.items()) == [
        ("model", "claude-sonnet-4-5"),
        ("max_tokens", 100),
        ("messages", []),
        ("stop_sequences", ["END"]),
        ("temperature", 0.5),
        ("output_config", {"effort": "low"}),
        ("service_tier", "auto"),
    ]
    both = made(reasoning_effort="low", output_config={"format": {"type": "json_schema"}}, stop=["a", "b"])
    assert both["output_config"] == {"format": {"type": "json_schema"}, "effort": "low"}
    assert both["stop_sequences"] == ["a", "b"]
    swapped = made(output_config={"format": {}}, reasoning_effort="low")
    assert swapped["output_config"] == {"format": {}, "effort": "low"}


@pytest.mark.parametrize(("model", "limit"), [(MODEL, 32_000), ("mine:claude", 4096)])
def test_there_is_always_a_limit(model: str, limit: int) -> None:
    """The format asks for a limit of tokens; without a setting it is the profile's."""
    assert made(model=model)["max_tokens"] == limit
    assert made(model=model, max_tokens=7)["max_tokens"] == 7


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"messages": []}, f"setting messages of model {MODEL} is the history"),
        ({"system": "x"}, "register sections"),
        ({"model": "x"}, "stands in the config itself"),
        ({"tools": []}, "are contributed"),
        ({"stream": True}, "whoever sends the request"),
        ({"betas": []}, "anthropic-beta"),
        ({"max_completion_tokens": 5}, "is called max_tokens here"),
        ({"max_tokens": 0}, "positive number"),
        ({"temperature": "hot"}, "give a number"),
        ({"top_k": 0.5}, "give a number"),
        ({"stop": [1]}, "give a text or a list of texts"),
        ({"stop": "a", "stop_sequences": ["b"]}, "given by two names"),
        ({"stop_sequences": "a"}, "give a list of texts"),
        ({"reasoning_effort": 3}, "give a word"),
        ({"reasoning_effort": "low", "output_config": {"effort": "high"}}, "given by two names"),
        ({"thinking": "adaptive"}, 'give an object, as in {"type": "adaptive"}'),
        ({"tool_choice": "auto"}, "give an object"),
        ({"output_config": None}, "give an object"),
        ({"cache_control": True}, "give an object"),
    ],
)
def test_a_setting_that_cannot_be(settings: dict[str, Any], why: str) -> None:
    """What is no setting, or of the wrong type, is refused by name, with what to do instead."""
    with pytest.raises(InvalidModelSettingError, match=why):
        anthropic.body(ModelRequest("", (), (), ModelConfig("anthropic", "claude-sonnet-4-5", settings)))


def test_thinking() -> None:
    """Thinking that must be sent back with the results of tools is refused where there are tools: it is not kept."""
    enabled = {"type": "enabled", "budget_tokens": 2048}
    tool = ToolSchema("a", "", {})
    assert made(thinking=enabled)["thinking"] == enabled
    assert made(tools=(tool,), thinking={"type": "adaptive"})["thinking"] == {"type": "adaptive"}
    with pytest.raises(InvalidModelSettingError, match=r'thoughts.*give \{"type": "adaptive"\}'):
        made(tools=(tool,), thinking=enabled)


def test_profiles_by_name() -> None:
    """A provider's name brings its profile; one that is not known is taken for compatible."""
    assert [messages_profile_of(name) for name in ("anthropic", "mine")] == [ANTHROPIC, COMPATIBLE_MESSAGES]
    assert len({ANTHROPIC, COMPATIBLE_MESSAGES}) == 2


# For those who use the SDK themselves


def test_what_an_sdk_takes() -> None:
    """A rendering, the user's own history and a model make the keyword arguments; runtime contexts come last."""
    prompt = SystemPrompt(persona="Be brief.", include_harness_identity=False)
    prompt.context("clock", "It is 10:00.", order=1)
    prompt.tools([ToolSchema("clock", "Tells the time.", {"type": "object"})])
    rendering = prompt.render_sync()
    mine = {"role": "user", "content": "Hi."}
    told = anthropic.request(rendering, [mine, AssistantMessage("Hello."), UserMessage("Well?")], config=MODEL)
    assert told == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
        "tools": [
            {
                "name": "clock",
                "description": "Tells the time.",
                "input_schema": {"type": "object"},
                "cache_control": MARK,
            }
        ],
        "messages": [
            mine,
            {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Well?", "cache_control": MARK},
                    {"type": "text", "text": rendering.snapshot},
                ],
            },
        ],
    }
    assert told["messages"][0] is mine


def test_three_sections() -> None:
    """Sections become text blocks whose concatenation is the rendered text."""
    prompt = SystemPrompt(include_harness_identity=False)
    for order, text in enumerate(("One.", "Two.", "Three.")):
        prompt.section(text, text if order < 2 else lambda: "Three.", order=order)
    rendering = prompt.render_sync()
    told = anthropic.request(rendering, [], config=ModelConfig("mine", "claude", {"top_k": 1}))
    assert "".join(block["text"] for block in told["system"]) == rendering.text == "One.\n\nTwo.\n\nThree."
    assert len(told["system"]) == 2
    assert (told["top_k"], told["max_tokens"]) == (1, 4096)


@pytest.mark.parametrize(("theirs", "ours"), [(0, 2), (1, 2), (2, 2), (3, 1), (4, 0), (5, 0)])
def test_marks_of_the_users_own(theirs: int, ours: int) -> None:
    """Marks in messages that the user made count: together there are no more than four, and theirs stay."""
    prompt = SystemPrompt(persona="Be brief.", include_harness_identity=False)
    prompt.tools([ToolSchema("a", "", {})])
    blocks = [{"type": "text", "text": str(at), "cache_control": MARK} for at in range(theirs)]
    history = [{"role": "user", "content": [{"type": "text", "text": "x"}, *blocks]}, UserMessage("y")]
    told = anthropic.request(prompt.render_sync(), history, config=MODEL)
    assert marks([told["system"], told["tools"]]) == ours
    assert marks(told["messages"]) == (theirs or 1)


class Said:
    """A message as an SDK gives it."""

    def __init__(self, role: str) -> None:
        self.role = role


def test_an_sdks_own_messages_pass() -> None:
    """Messages that the SDK gave go back to it as they are, each a turn of its own."""
    answer = Said("assistant")
    history = [AssistantMessage("a"), answer, AssistantMessage("b")]
    told = anthropic.request(SystemPrompt().render_sync(), history, config=MODEL)["messages"]
    assert told[1] is answer
    assert [turn["content"] for turn in told[::2]] == [[{"type": "text", "text": text}] for text in "ab"]


@pytest.mark.parametrize("message", [{"role": "system", "content": "x"}, Said("system")])
def test_a_second_system_message_is_refused(message: object) -> None:
    """A history that brings a system message of its own is an error, which says to make it a section."""
    with pytest.raises(MisplacedInstructionsError, match=r"message 1 of the history.*section"):
        anthropic.request(SystemPrompt().render_sync(), [UserMessage("Hi."), message], config=MODEL)


def test_a_model_without_provider() -> None:
    """The config must name a provider."""
    with pytest.raises(InvalidModelError, match="claude"):
        anthropic.request(SystemPrompt().render_sync(), [], config="claude")
