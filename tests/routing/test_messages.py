"""Messages are small frozen values, and the module's docstring names all of them."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, is_dataclass
from typing import get_args

import pytest

from tidegate.language.filters import parse
from tidegate.routing import messages as m

REQUESTS, BETWEEN_BROKERS = set(get_args(m.ClientRequest)), set(get_args(m.PeerMessage))
TO_CLIENTS = {m.Deliver, m.DeliverSequence, m.InForce, m.Missed, m.Refused}
NO_MESSAGES = {"Examination", "Publication"}
"""Values that are only parts of messages."""


def test_every_message_is_of_one_kind() -> None:
    classes = {
        each
        for each in vars(m).values()
        if is_dataclass(each) and getattr(each, "__module__", None) == m.__name__
    }
    messages = {each for each in classes if each.__name__ not in NO_MESSAGES}  # type: ignore[union-attr]
    assert messages == REQUESTS | BETWEEN_BROKERS | TO_CLIENTS == set(get_args(m.Message))
    assert not REQUESTS & BETWEEN_BROKERS
    assert not (REQUESTS | BETWEEN_BROKERS) & TO_CLIENTS


def test_the_docstring_names_every_message() -> None:
    assert m.__doc__ is not None
    table = m.__doc__.split("\n\n")[1]
    named = {name for name in re.findall(r"[A-Z]\w+", table) if hasattr(m, name)}
    assert named == {each.__name__ for each in get_args(m.Message)}


@pytest.mark.parametrize("kind", get_args(m.Message), ids=lambda kind: kind.__name__)
def test_every_message_says_who_sends_it(kind: type[object]) -> None:
    assert kind.__doc__ is not None
    first = kind.__doc__.split(".")[0].lower()
    assert any(word in first for word in ("client", "broker", "neighbour", "wave"))


def test_messages_do_not_change() -> None:
    message = m.Subscribe("x < 1")
    with pytest.raises(FrozenInstanceError):
        message.wanted = "x < 2"  # type: ignore[misc]
    delta = m.FilterDelta(((m.Key(1, None), parse("x < 1")),))
    assert delta == m.FilterDelta(((m.Key(1, None), parse("x < 1")),))
    assert delta != m.FilterDelta(((m.Key(1, "t"), parse("x < 1")),))


def test_stamps_of_one_broker_are_in_the_order_of_publication_over_a_restart() -> None:
    stamps = [m.Stamp("b", 0, 1), m.Stamp("b", 0, 10), m.Stamp("b", 5, 1), m.Stamp("b", 5, 2)]
    assert sorted([stamps[2], stamps[0], stamps[3], stamps[1]]) == stamps
