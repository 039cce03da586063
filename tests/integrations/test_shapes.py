"""Laws of the formats: what is read off a body, and what of it stands nowhere else, make up the body again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.integrations.book import Place
from foreword.integrations.exchange import Where, sent_of
from foreword.integrations.formats import Format, format_of
from foreword.integrations.shape import RecordedBody, leaves
from foreword.prompt.spans import SEPARATOR
from foreword.wire.request import ModelRequest

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ID = st.text("abc123_", min_size=1, max_size=6)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([2**60, -(2**53), -0.0])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(WORDS, inner, max_size=3)
        | st.dictionaries(st.just("$json"), inner)
    ),
    max_leaves=6,
)


def nested(depth: int) -> dict[str, Any]:
    """A schema that is so many levels deep."""
    inner: dict[str, Any] = {"maximum": 2**60}
    for _ in range(depth):
        inner = {"properties": {"a": inner}}
    return inner


OBJECTS = st.dictionaries(WORDS, VALUES, max_size=3) | st.integers(20, 80).map(nested)
CACHE = st.just({"cache_control": {"type": "ephemeral"}}) | st.just({})


def merged(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda given: {key: value for part in given for key, value in part.items()})


def fixed(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(fields)


SETTINGS = st.fixed_dictionaries(
    {},
    optional={"temperature": st.integers(0, 2), "stream": st.booleans(), "metadata": OBJECTS, "stop": st.lists(WORDS)},
)


def content(text_type: str, other: dict[str, Any]) -> st.SearchStrategy[Any]:
    text = merged(fixed(type=st.just(text_type), text=WORDS), CACHE)
    return WORDS | st.lists(text | merged(st.just(other), CACHE), min_size=1, max_size=3)


# -- chat completions --------------------------------------------------------------------------------------------------

CHAT_CONTENT = content("text", {"type": "image_url", "image_url": {"url": "data:,x"}})
CHAT_CALL = fixed(id=ID, type=st.just("function"), function=fixed(name=ID, arguments=WORDS))
CHAT_MESSAGE = st.one_of(
    fixed(role=st.sampled_from(["system", "developer", "user"]), content=CHAT_CONTENT),
    fixed(role=st.just("user"), content=CHAT_CONTENT, metadata=OBJECTS),
    fixed(role=st.just("assistant"), content=st.none() | CHAT_CONTENT),
    fixed(role=st.just("assistant"), content=st.none() | WORDS, tool_calls=st.lists(CHAT_CALL, min_size=1, max_size=2)),
    fixed(tool_call_id=ID, role=st.just("tool"), content=CHAT_CONTENT),
)
CHAT_TOOL = fixed(
    type=st.just("function"),
    function=merged(
        fixed(name=ID, parameters=OBJECTS),
        st.just({}) | fixed(description=WORDS),
        st.just({"strict": True}) | fixed(examples=st.lists(OBJECTS, max_size=2)),
    ),
)
CHAT = merged(
    fixed(model=ID, messages=st.lists(CHAT_MESSAGE, max_size=6)),
    st.just({}) | fixed(tools=st.lists(CHAT_TOOL)),
    SETTINGS,
)

# -- responses ---------------------------------------------------------------------------------------------------------

ITEM = st.one_of(
    fixed(
        role=st.sampled_from(["system", "developer", "user", "assistant"]),
        content=content("input_text", {"type": "input_image", "image_url": "data:,x"}),
    ),
    fixed(type=st.just("function_call"), call_id=ID, name=ID, arguments=WORDS, id=ID),
    fixed(type=st.just("function_call_output"), call_id=ID, output=WORDS),
    fixed(type=st.just("reasoning"), id=ID, summary=st.just([]), encrypted_content=WORDS),
)
RESPONSES_TOOL = fixed(type=st.just("function"), name=ID, description=WORDS, parameters=OBJECTS) | fixed(
    type=st.just("web_search"), size=ID, metadata=OBJECTS
)
RESPONSES = merged(
    fixed(input=WORDS | st.lists(ITEM, max_size=6), model=ID),
    st.just({}) | fixed(instructions=WORDS | st.none()),
    SETTINGS,
    st.just({}) | fixed(tools=st.lists(RESPONSES_TOOL, max_size=3)),
)

# -- Anthropic's messages ----------------------------------------------------------------------------------------------

TEXT_BLOCK = merged(fixed(type=st.just("text"), text=WORDS), CACHE)
THOUGHT = fixed(type=st.just("thinking"), thinking=WORDS, signature=WORDS)
USE = merged(fixed(type=st.just("tool_use"), id=ID, name=ID, input=OBJECTS), CACHE)
RESULT_CONTENT = WORDS | st.lists(TEXT_BLOCK, min_size=1, max_size=2)
RESULT = merged(
    fixed(type=st.just("tool_result"), tool_use_id=ID),
    st.just({}) | fixed(content=RESULT_CONTENT),
    st.just({}) | fixed(is_error=st.booleans()),
    CACHE,
)
IMAGE = merged(st.just({"type": "image", "source": {"type": "url", "url": "x"}}), CACHE)
TURN = st.one_of(
    fixed(role=st.just("assistant"), content=WORDS | st.lists(TEXT_BLOCK | THOUGHT | USE, min_size=1, max_size=4)),
    fixed(role=st.just("user"), content=WORDS | st.lists(TEXT_BLOCK | IMAGE | RESULT, min_size=1, max_size=4)),
)
MESSAGES_TOOL = merged(fixed(name=ID, description=WORDS, input_schema=OBJECTS), CACHE) | fixed(type=ID, name=ID)
MESSAGES = merged(
    fixed(max_tokens=st.integers(1, 9), messages=st.lists(TURN, max_size=5), model=ID),
    st.just({}) | fixed(system=WORDS | st.lists(TEXT_BLOCK, max_size=3)),
    st.just({}) | fixed(tools=st.lists(MESSAGES_TOOL, max_size=3)),
    SETTINGS,
)

PATHS = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES}
STYLES: list[dict[str, Any]] = [{"ensure_ascii": False, "separators": (",", ":")}, {"separators": (",", ":")}, {}]


def known(path: str) -> Format:
    found = format_of(path)
    assert found is not None
    return found


@pytest.mark.parametrize("path", PATHS)
@given(data=st.data())
def test_a_body_comes_back_to_the_byte(path: str, data: st.DataObject) -> None:
    """Whatever a body holds, in whichever of the styles of JSON, the neutral request and the shape give it again."""
    body, style = data.draw(PATHS[path]), data.draw(st.sampled_from(STYLES))
    content = json.dumps(body, **style).encode()
    sent = sent_of(known(path), content, "localhost", Where(Place()), retry=False)
    told = sent.told
    assert told.shape is not None
    history = tuple(heard.message for heard in told.history)
    request = ModelRequest(SEPARATOR.join(told.instructions), told.tools, history, sent.config)
    shape = type(told.shape).from_json(json.loads(json.dumps(told.shape.to_json(None))), None)
    assert shape is not None
    assert RecordedBody("", "", shape).body(request) == content


@pytest.mark.parametrize("path", PATHS)
@given(data=st.data())
def test_no_text_is_in_a_shape(path: str, data: st.DataObject) -> None:
    """What people, models and tools say stands in the history alone, so that it can be erased."""
    secret = "what-somebody-said"
    marked = json.loads(json.dumps(data.draw(PATHS[path])))
    texts = _with_secret(marked, secret)
    sent = sent_of(known(path), json.dumps(marked).encode(), "localhost", Where(Place()), retry=False)
    assert sent.told.shape is not None
    assert secret not in json.dumps(sent.told.shape.to_json(None))
    kept = [*sent.told.instructions, *leaves(heard.message for heard in sent.told.history)]
    assert sum(text.count(secret) for text in kept) >= texts


def _with_secret(value: Any, secret: str) -> int:
    """Put a secret into all texts of a body; gives how many there are."""
    if isinstance(value, list):
        return sum(_with_secret(each, secret) for each in value)
    if not isinstance(value, dict):
        return 0
    count = 0
    for key, inner in value.items():
        if key in ("text", "thinking") or (key in ("content", "output") and isinstance(inner, str)):
            value[key] = f"{inner}{secret}"
            count += 1
        elif key not in ("metadata", "tools", "stop", "input") or isinstance(inner, list):
            count += _with_secret(inner, secret)
    return count


@pytest.mark.parametrize("own", [{"$json": "5"}, {"$json": "no JSON"}, {"$json": '{"$json":"5"}'}])
def test_an_object_that_looks_like_one_of_ours_is_none(own: dict[str, Any]) -> None:
    """What spells a value out in the log is not taken for what an application sent in just that form."""
    message = {"role": "user", "content": "?", "metadata": own}
    tool = {"type": "function", "function": {"name": "f", "parameters": own}}
    body = {"model": "m", "messages": [message], "tools": [tool], "metadata": own}
    content = json.dumps(body).encode()
    sent = sent_of(known("/v1/chat/completions"), content, "localhost", Where(Place()), retry=False)
    assert sent.told.shape is not None  # it was held against the content
    assert sent.config.settings["metadata"] == {"$json": json.dumps(own, separators=(",", ":"))}


ODD = [
    b'{"model":"m","messages":[],"x":1.50}',
    b'{"model":"m","messages":[],"x":1e400}',
    b'{"model":"m","model":"m","messages":[]}',
]


@given(content=st.sampled_from(ODD))
def test_what_cannot_come_back_has_no_shape(content: bytes) -> None:
    """Of JSON that nobody would write so, the recorder knows that it cannot give it again."""
    sent = sent_of(known("/v1/chat/completions"), content, "localhost", Where(Place()), retry=False)
    assert sent.told.shape is None
    assert sent.told.model == "m"
