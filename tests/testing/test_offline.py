"""The client that stands in for a provider: the SDKs take its answers for answers, and its refusals for refusals."""

from __future__ import annotations

import anthropic
import openai
import pytest

from foreword.testing import offline_client

pytestmark = pytest.mark.anyio

ASKED: list[dict[str, str]] = [{"role": "user", "content": "How late is it?"}]


async def test_it_answers_in_the_format_it_is_asked_in() -> None:
    """Chat completions, responses and messages get the texts, in order."""
    http = offline_client("One.", "Two.", "Three.")
    vendor = openai.AsyncOpenAI(api_key="none", http_client=http)
    chat = await vendor.chat.completions.create(model="m", messages=ASKED)  # type: ignore[arg-type]
    response = await vendor.responses.create(model="m", input="How late is it?")
    other = anthropic.AsyncAnthropic(api_key="none", http_client=http)
    message = await other.messages.create(model="m", max_tokens=9, messages=ASKED)  # type: ignore[arg-type]
    said = (chat.choices[0].message.content, response.output_text, message.content[0].text)  # type: ignore[union-attr]
    assert said == ("One.", "Two.", "Three.")


@pytest.mark.parametrize(("asked", "why"), [({"stream": True}, "whole"), ({}, "a further request")])
async def test_it_says_what_it_does_not_do(asked: dict[str, bool], why: str) -> None:
    """A stream, or a request beyond the script, is refused with the reason."""
    client = openai.AsyncOpenAI(api_key="none", http_client=offline_client(*(["One."] if asked else [])))
    with pytest.raises(openai.BadRequestError, match=why):
        await client.chat.completions.create(model="m", messages=ASKED, **asked)  # type: ignore[call-overload]


async def test_what_it_does_not_know_is_refused() -> None:
    """Other addresses have no answer."""
    client = openai.AsyncOpenAI(api_key="none", http_client=offline_client("One."))
    with pytest.raises(openai.BadRequestError, match="/v1/embeddings"):
        await client.embeddings.create(model="m", input="?")
