"""Addresses: what names a request, and what is said of one that names none."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.session.support import Stores, answer, ask, attempt, end, take_tool_turn, take_turn

from foreword.session import (
    InvalidAddressError,
    Log,
    RequestEnded,
    Session,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    UnknownAddressError,
)
from foreword.session.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("last", Address("last")),
        ("7f3a", Address("7f3a")),
        ("a-b_C9@12", Address("a-b_C9", 12)),
        ("7f3a@3.1", Address("7f3a", None, 3, 1)),
        ("last/2", Address("last", attempt=2)),
        ("last@12/2", Address("last", 12, attempt=2)),
        ("last@3.1/2", Address("last", None, 3, 1, 2)),
    ],
)
def test_parts_of_an_address(text: str, address: Address) -> None:
    """Session, step by number or by turn and step, attempt; told again as it was written."""
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin with the id of a session"),
        ("@3", "does not begin with the id of a session"),
        ("-a@3", "does not begin with the id of a session"),
        ("a b", "does not begin with the id of a session"),
        ("last@", '"" is no number of a step'),
        ("last@0", '"0" is no number of a step, from 1'),
        ("last@007", '"007" is no number'),
        ("last@-1", '"-1" is no number'),
        ("last@x", '"x" is no number of a step'),
        ("last@1.", '"" is no number of a step'),
        ("last@.1", '"" is no number of a turn'),
        ("last@1.2.3", '"2.3" is no number of a step'),
        ("last@1@2", '"1@2" is no number of a step'),
        ("last/0", '"0" is no number of an attempt'),
        ("last/", '"" is no number of an attempt'),
        ("last/1/2", '"1/2" is no number of an attempt'),
        ("last@1/x", '"x" is no number of an attempt'),
        ("last@\n1", '"\\n1" is no number of a step'),
        ("last@٣", '"٣" is no number of a step'),
        ("last@" + "9" * 400, "is no number"),
    ],
)
def test_what_is_no_address(text: str, why: str) -> None:
    """The message tells what is wrong and how addresses are written, and survives a process border."""
    with pytest.raises(InvalidAddressError) as caught:
        parse_address(text)
    assert why in str(caught.value)
    assert "SESSION@TURN.STEP" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@given(st.text(max_size=30) | st.from_regex(r"\A[a-z0-9]{1,3}(@[0-9.]{0,4})?(/[0-9]{0,2})?\Z"))
def test_any_text_is_an_address_or_told_to_be_none(text: str) -> None:
    """No text does anything else than parse, to an address that is told as it was written, or be refused."""
    try:
        address = parse_address(text)
    except InvalidAddressError:
        return
    assert str(address) == text


def conversation(session: Session) -> None:
    """Three turns: one step; two steps; one step that failed before any request, then one of three attempts."""
    take_turn(session)
    take_tool_turn(session)
    session.append(TurnStart(3))
    session.append(StepStart(3, 1))
    session.append(StepEnd(3, 1))
    session.append(TurnEnd(3, "error"))
    ask(session)
    for number in (2, 3):
        session.append(RequestEnded(4, 1, number - 1, "error"))
        attempt(session, number=number)
    session.append(RequestEnded(4, 1, 3, "stop"))
    end(session)


async def located(log: Log, address: str) -> tuple[object, ...]:
    found = await log.locate(address)
    return found.number, found.turn, found.step, found.attempt, found.attempts


@pytest.mark.anyio
async def test_where_addresses_lead(stores: Stores) -> None:
    """Steps count over all turns; without @ the newest is meant, without / its last attempt."""
    async with stores.log() as log:
        session = await log.create("clerk")
        conversation(session)
        await session.flush()
        assert await located(log, "clerk@1") == (1, 1, 1, 1, 1)
        assert await located(log, "cl@3") == await located(log, "clerk@2.2") == (3, 2, 2, 1, 1)
        assert await located(log, "last") == await located(log, "last@5") == (5, 4, 1, 3, 3)
        assert await located(log, "last/1") == await located(log, "last@4.1/1") == (5, 4, 1, 1, 3)
        where = await log.locate("last/2")
        assert str(where) == "clerk@5/2"
        assert await log.locate(str(where)) == where
        attempted = (await session.read(where.seq, where.seq + 1))[0].event
        assert getattr(attempted, "attempt", None) == 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("clerk@6", "session clerk has 5 steps, the last of them step 1 of turn 4"),
        ("clerk@2.3", "session clerk has 5 steps"),
        ("clerk@9.1", "session clerk has 5 steps"),
        ("last/4", "step 5 of session clerk made 3 attempts"),
        ("last@1/2", "step 1 of session clerk made 1 attempt"),
        ("last@4", "step 4 of session clerk (turn 3, step 1) made no request"),
        ("clark@1", 'did you mean "clerk"'),
    ],
)
async def test_addresses_that_lead_nowhere(stores: Stores, address: str, why: str) -> None:
    """The message repeats the address and tells what there is instead."""
    async with stores.log() as log:
        session = await log.create("clerk")
        conversation(session)
        await session.flush()
        with pytest.raises(UnknownAddressError) as caught:
            await log.locate(address)
        assert str(caught.value).startswith(f'"{address}" leads nowhere: ')
        assert why in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.anyio
async def test_a_session_without_steps(stores: Stores) -> None:
    """Of a session without a step that is said."""
    async with stores.log() as log:
        session = await log.create("clerk")
        session.append(TurnStart(1))
        await session.flush()
        with pytest.raises(UnknownAddressError, match="session clerk has no step yet"):
            await log.locate("clerk")
        session.append(StepStart(1, 1))
        await session.flush()
        with pytest.raises(UnknownAddressError, match="made no request"):
            await log.locate("clerk")
        attempt(session)
        await session.flush()
        assert await located(log, "clerk") == (1, 1, 1, 1, 1)
        answer(session)
