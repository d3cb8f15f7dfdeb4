"""Link sessions: what one broker sends another survives broken connections and restarts.

Rules.

(1) What one end sends is a *stream* of messages, numbered from 1. Its epoch is when that end was
    started: an end that restarts begins another stream.
(2) The sender keeps each message until the receiver acknowledges it. The receiver acknowledges what
    it has committed: it stores the epoch and the number in the same step as what follows from the
    message. On a new connection the sender sends again whatever was not committed.
(3) The receiver takes each number once, in order.
(4) The stream of an end that comes back from its durable state begins with a `Sync`, from which the
    other end learns what holds now (`begin_with`). The messages of its last stream that had not
    arrived are void.
(5) A sender keeps no more than ``kept_max`` messages. When it is full, or when an end has forgotten
    what it had acknowledged, the link must be given up and set up anew (`SessionLostError`).

Theory of operation. Two connections never exist at the same time. On each, both ends first send
`SessionOpen`, which says what they have committed of the other's stream, and then

    opened(theirs)  ->  the messages to send again        closed()  when the connection is gone
    send(message)   ->  the message with its number, or None while there is no connection
    take(number)    ->  whether to handle a message
    commit()        ->  the number to acknowledge, after the durable state was stored

Messages are opaque here: a runtime may keep their bytes.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, TypeVar

from tidegate.errors import LinkProtocolError, SessionLostError

M = TypeVar("M")

KEPT_MAX = 1_000_000
"""Messages that a session keeps by default."""


class StreamPosition(NamedTuple):
    """How far a stream was taken: the epoch of the sender, and the number of its last message."""

    epoch: int
    number: int


NOTHING = StreamPosition(0, 0)
"""Nothing was taken from any stream of the other end."""


class SessionOpen(NamedTuple):
    """What both ends tell each other first on a new connection."""

    epoch: int
    """The epoch of the sender's own stream."""
    committed: StreamPosition
    """What the sender has committed of the receiver's stream."""
    is_restored: bool = False
    """Whether the sender came back from its durable state, and knows of this link from that."""


class LinkSession(Generic[M]):
    """One end of a link.

    >>> here, there = LinkSession(epoch=1), LinkSession(epoch=1)
    >>> here.send("before there is a connection")
    >>> here.opened(there.opening()), there.opened(here.opening())
    ([(1, 'before there is a connection')], [])
    >>> there.take(1), here.send("and after"), there.commit()
    (True, (2, 'and after'), 1)
    >>> here.acknowledged(1); here.closed(); there.closed()
    >>> here.opened(there.opening())
    [(2, 'and after')]
    """

    def __init__(
        self,
        epoch: int,
        *,
        committed: StreamPosition = NOTHING,
        restored: bool = False,
        kept_max: int = KEPT_MAX,
    ) -> None:
        """``epoch`` must be later after each restart. ``committed`` is what was stored with the
        durable state, and ``restored`` says whether there was one (rule 4)."""
        if epoch <= 0:
            raise ValueError(f"an epoch is more than 0, not {epoch}")
        self.epoch = epoch
        self._is_restored = restored
        self.needs_sync = restored
        """Whether `begin_with` must be called before `opened`."""
        self._kept: deque[M] = deque()
        self._kept_max = kept_max
        self._acknowledged = 0
        """The number of the message before the first that is kept."""
        self._is_open = False
        self._committed = committed
        self._taken = committed

    def __len__(self) -> int:
        """The number of messages that are kept."""
        return len(self._kept)

    @property
    def is_open(self) -> bool:
        """Whether there is a connection on which messages go."""
        return self._is_open

    @property
    def is_nearly_full(self) -> bool:
        """Whether an end that can refuse should let nothing begin that ends in a message here."""
        return len(self._kept) >= self._kept_max * 0.9

    @property
    def is_full(self) -> bool:
        """Whether no more messages can be kept."""
        return len(self._kept) >= self._kept_max

    # -- connections --------------------------------------------------------------------------

    def opening(self) -> SessionOpen:
        """What to tell the other end first on a new connection."""
        return SessionOpen(self.epoch, self._committed, self._is_restored)

    def opened(self, theirs: SessionOpen) -> list[tuple[int, M]]:
        """Go on, on a new connection, from what the other end has committed.

        Returns the messages to send again. Raises SessionLostError where that is impossible.
        """
        if self.needs_sync:
            raise RuntimeError("a session that was restored begins with a Sync; call begin_with")
        epoch, number = theirs.committed
        if epoch != self.epoch:
            number = 0  # it knows nothing of this stream, but maybe of one before it
        if number > self._last_number:
            raise LinkProtocolError(
                f"the other end has committed message {number} of {self._last_number}"
            )
        if number < self._acknowledged:
            raise SessionLostError(
                f"the other end has acknowledged message {self._acknowledged} and now knows of "
                f"{number} only; its state was lost, or is an old copy"
            )
        if theirs.epoch < self._taken.epoch:
            raise SessionLostError(
                f"the other end was started at {theirs.epoch}, before {self._taken.epoch}, when it "
                "had been started already; its clock went back, or it is an old copy"
            )
        if not theirs.is_restored and theirs.epoch > self._taken.epoch > 0:
            raise SessionLostError("the other end was started anew, without its state")
        if theirs.epoch > self._taken.epoch:
            self._taken = StreamPosition(theirs.epoch, 0)
        self._forget(number)
        self._is_open = True
        return list(enumerate(self._kept, self._acknowledged + 1))

    def closed(self) -> None:
        """Note that the connection is gone; messages are kept until the next one."""
        self._is_open = False

    # -- the own stream -----------------------------------------------------------------------

    @property
    def _last_number(self) -> int:
        return self._acknowledged + len(self._kept)

    def begin_with(self, message: M) -> None:
        """Begin the stream of an end that was restored, before what it has sent so far (rule 4)."""
        self._kept.appendleft(message)
        self.needs_sync = False

    def send(self, message: M) -> tuple[int, M] | None:
        """Keep a message; returns it with its number, to be sent now, if there is a connection."""
        if self.is_full:
            raise SessionLostError(
                f"{len(self._kept):,} messages are kept for the other end, which is the most"
            )
        self._kept.append(message)
        return (self._last_number, message) if self._is_open else None

    def is_acknowledged(self, number: int) -> bool:
        """Whether a number was acknowledged already."""
        return number <= self._acknowledged

    def acknowledged(self, number: int) -> None:
        """Forget the messages that the other end has committed."""
        if number > self._last_number:
            raise LinkProtocolError(
                f"the other end acknowledges message {number} of {self._last_number}"
            )
        self._forget(number)

    def _forget(self, number: int) -> None:
        while self._acknowledged < number:
            self._kept.popleft()
            self._acknowledged += 1

    # -- the stream of the other end ------------------------------------------------------------

    @property
    def taken(self) -> StreamPosition:
        """What was taken of the other end's stream; to be stored with what follows from it."""
        return self._taken

    def take(self, number: int) -> bool:
        """Whether to handle a message of the other end: False for one that was taken before."""
        if number > self._taken.number + 1:
            raise LinkProtocolError(
                f"message {number} of the other end came after {self._taken.number}"
            )
        if number <= self._taken.number:
            return False
        self._taken = StreamPosition(self._taken.epoch, number)
        return True

    def commit(self) -> int:
        """Note that ``taken`` was stored; returns the number to acknowledge."""
        self._committed = self._taken
        return self._committed.number
