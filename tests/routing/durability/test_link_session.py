"""Two ends, connections that break anywhere, ends that restart: each message is committed once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

import pytest

from tidegate.errors import LinkProtocolError, SessionLostError
from tidegate.routing.durability.link_session import (
    NOTHING,
    LinkSession,
    SessionOpen,
    StreamPosition,
)


class End:
    """An end of a link that commits what it takes, as texts, and can restart from that."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 1
        self.session: LinkSession[str] = LinkSession(self.epoch)
        self.sent = 0
        self.taken: list[str] = []
        self.stored: tuple[list[str], StreamPosition] = [], NOTHING
        self.open_to_commit = False

    def text(self) -> str:
        self.sent += 1
        return f"{self.name} {self.epoch}.{self.sent}"

    def restart(self) -> None:
        """Come back from what was stored; what was sent and has not arrived is void."""
        self.epoch += 1
        self.sent = 0
        texts, committed = self.stored
        self.taken = list(texts)
        self.session = LinkSession(self.epoch, committed=committed, restored=True)


class Link:
    """Two ends and the connection between them, on which bytes are lost when it breaks."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.ends = [End("a"), End("b")]
        self.ways: list[deque[tuple[str, int, str]]] = [deque(), deque()]
        """What is on its way to each end: messages, and acknowledgements."""
        self.is_connected = False

    def connect(self) -> None:
        if self.is_connected:
            return
        self.is_connected = True
        for end in self.ends:
            if end.session.needs_sync:
                end.session.begin_with(f"{end.name} {end.epoch}.sync")
        opening = [end.session.opening() for end in self.ends]
        for index, end in enumerate(self.ends):
            for number, text in end.session.opened(opening[1 - index]):
                self.ways[1 - index].append(("message", number, text))

    def disconnect(self) -> None:
        self.is_connected = False
        for end, way in zip(self.ends, self.ways, strict=True):
            end.session.closed()
            way.clear()

    def send(self, index: int) -> None:
        end = self.ends[index]
        numbered = end.session.send(end.text())
        if numbered is not None:
            self.ways[1 - index].append(("message", *numbered))

    def arrive(self, index: int) -> None:
        if not self.ways[index]:
            return
        end, (what, number, text) = self.ends[index], self.ways[index].popleft()
        if what == "ack":
            end.session.acknowledged(number)
        elif end.session.take(number):
            end.taken.append(text)

    def commit(self, index: int) -> None:
        end = self.ends[index]
        end.stored = list(end.taken), end.session.taken
        number = end.session.commit()
        if self.is_connected:
            self.ways[1 - index].append(("ack", number, ""))

    def restart(self, index: int) -> None:
        self.disconnect()
        self.ends[index].restart()

    def run(self, steps: int, *, restarts: bool) -> None:
        actions: list[Callable[[int], None]] = [self.send, self.arrive, self.commit]
        for _ in range(steps):
            chance = self.random.random()
            if chance < 0.05:
                self.disconnect()
            elif chance < 0.1:
                self.connect()
            elif chance < 0.12 and restarts:
                self.restart(self.random.randrange(2))
            else:
                self.random.choice(actions)(self.random.randrange(2))
        self.connect()
        for index in (0, 1):
            while self.ways[index]:
                self.arrive(index)
            self.commit(index)

    def problems(self) -> list[str]:
        """What each end has taken must be a beginning of each stream of the other, and all of its
        last one."""
        found = []
        for index, end in enumerate(self.ends):
            other = self.ends[1 - index]
            streams: dict[int, list[str]] = {}
            for text in end.taken:
                streams.setdefault(int(text.split()[1].split(".")[0]), []).append(text)
            if list(streams) != sorted(streams):
                found.append(f"{end.name} has taken streams out of order")
            for epoch, texts in streams.items():
                first = [] if epoch == 1 else [f"{other.name} {epoch}.sync"]
                count = len(texts) - len(first)
                all_of_it = first + [f"{other.name} {epoch}.{n + 1}" for n in range(count)]
                if texts != all_of_it:
                    found.append(f"{end.name} has taken {texts}, not {all_of_it}")
            last = len(streams.get(other.epoch, ())) - (other.epoch > 1)
            if last != other.sent:
                found.append(f"{end.name} has taken {last} of {other.sent}")
        return found


def problems(*, seeds: int = 40, restarts: bool = True) -> list[str]:
    """The problems of some random runs."""
    found: list[str] = []
    for seed in range(seeds):
        link = Link(seed)
        link.run(300, restarts=restarts)
        found += link.problems()
    return found


@pytest.mark.parametrize("restarts", [False, True])
def test_each_message_is_taken_once_and_in_order(restarts: bool) -> None:
    assert problems(restarts=restarts) == []


# -- wrong sessions: each must be found, or the test above is worth nothing ------------------------


def test_a_session_that_sends_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(session: LinkSession[str], theirs: SessionOpen) -> list[tuple[int, str]]:
        right(session, theirs)
        return []

    right = LinkSession.opened
    monkeypatch.setattr(LinkSession, "opened", opened)
    with pytest.raises(LinkProtocolError, match="came after"):
        problems()


def test_a_session_that_says_it_has_committed_what_it_has_only_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def opening(session: LinkSession[str]) -> SessionOpen:
        return right(session)._replace(committed=session.taken)

    right = LinkSession.opening
    monkeypatch.setattr(LinkSession, "opening", opening)
    assert problems(restarts=False) == []  # only a restart shows it
    with pytest.raises(SessionLostError, match="and now knows of"):
        problems()


def test_a_session_that_takes_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(session: LinkSession[str], number: int) -> bool:
        return right(session, number) or True

    right = LinkSession.take
    monkeypatch.setattr(LinkSession, "take", take)
    assert "has taken" in str(problems(restarts=False))


# -- edges --------------------------------------------------------------------------------------


def test_no_more_is_kept_than_allowed() -> None:
    session: LinkSession[str] = LinkSession(1, kept_max=2)
    session.send("one")
    session.send("two")
    assert session.is_full
    with pytest.raises(SessionLostError, match="2 messages are kept"):
        session.send("three")
    session.opened(SessionOpen(1, NOTHING))
    session.acknowledged(1)
    assert session.send("three") == (3, "three")


def test_what_was_not_sent_cannot_be_acknowledged() -> None:
    session: LinkSession[str] = LinkSession(1)
    session.send("one")
    session.opened(SessionOpen(1, NOTHING))
    with pytest.raises(LinkProtocolError, match="acknowledges message 2 of 1"):
        session.acknowledged(2)
    session.closed()
    with pytest.raises(LinkProtocolError, match="has committed message 2 of 1"):
        session.opened(SessionOpen(1, StreamPosition(1, 2)))


def test_a_gap_is_an_error() -> None:
    session: LinkSession[str] = LinkSession(1)
    session.opened(SessionOpen(5, NOTHING))
    assert session.take(1)
    with pytest.raises(LinkProtocolError, match="message 3 of the other end came after 1"):
        session.take(3)


def test_an_end_that_has_lost_its_state_cannot_go_on() -> None:
    session: LinkSession[str] = LinkSession(1)
    session.opened(SessionOpen(5, NOTHING))
    session.take(1)
    session.closed()
    with pytest.raises(SessionLostError, match="was started anew, without its state"):
        session.opened(SessionOpen(6, NOTHING))
    with pytest.raises(SessionLostError, match="its clock went back"):
        session.opened(SessionOpen(4, StreamPosition(1, 0)))
    session.send("one")
    session.opened(SessionOpen(5, StreamPosition(1, 1)))
    session.closed()
    with pytest.raises(SessionLostError, match="has acknowledged message 1 and now knows of 0"):
        session.opened(SessionOpen(6, StreamPosition(1, 0), is_restored=True))


def test_a_restored_session_begins_with_a_sync() -> None:
    session: LinkSession[str] = LinkSession(2, committed=StreamPosition(5, 3), restored=True)
    session.send("later")
    with pytest.raises(RuntimeError, match="call begin_with"):
        session.opened(SessionOpen(5, StreamPosition(1, 9)))
    session.begin_with("sync")
    assert session.opened(SessionOpen(5, StreamPosition(1, 9))) == [(1, "sync"), (2, "later")]
    assert not session.take(3)
    assert session.take(4)
