"""The requests of clients: handed to the broker together, made durable, answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.errors import RoutingError, TidegateError
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.network.wire import requests as wire
from tidegate.network.wire.connection import Broken
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.filter_shapes import subscribe_messages
from tidegate.network.wire.flow import Ack, Credit, LinkAck
from tidegate.network.wire.handshake import Goodbye, Hello, Welcome
from tidegate.network.wire.links import Linked, Notifications
from tidegate.network.wire.problems import Problem
from tidegate.routing import messages as m

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.served_connection import ServedConnection
    from tidegate.network.server.sessions import ClientSession
    from tidegate.network.server.turns import Turn

_PLAIN = (
    wire.Unsubscribe, wire.Advertise, wire.Unadvertise, wire.Suspend, wire.Resume, wire.Depart,
)  # fmt: skip


CHARS_MAX = 65_536
"""Filters of one connection in one turn: what takes long to parse must not keep others waiting."""


@dataclass(slots=True)
class _Asked:
    """A request of a client, the messages it became, and what the broker said to each of them."""

    session: ClientSession
    request: Any
    messages: list[m.Message] = field(default_factory=list)
    error: TidegateError | None = None
    """Why the request could not become messages."""
    errors: dict[int, TidegateError] = field(default_factory=dict)


class RequestTurns:
    """Handles the requests of a turn, and whatever else comes before events."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server

    def handle(self, connections: Iterable[ServedConnection], turn: Turn) -> bool:
        """Handle what comes before the next events on each connection; returns whether something
        is left for the next turn, because a client has sent too many long filters at once."""
        asked: list[_Asked] = []
        is_left = False
        for connection in connections:
            chars = 0
            while connection.arrived and not has_events(connection.arrived[0]):
                message = connection.arrived[0]
                session, wait_s = connection.session, 0.0
                if session is not None and isinstance(message, wire.Request):
                    wait_s = self._server.rates.requests_wait_s(session.client.identity)
                    if wait_s and self._server.rates.slows:
                        connection.paused_s = wait_s
                        break
                chars += _filter_chars(message)
                if chars > CHARS_MAX and asked:
                    is_left = True
                    break
                connection.arrived.popleft()
                match message:
                    case Hello():
                        # The handshake comes first, so nothing of this connection waits yet.
                        self._server.admission.admit(connection, message, turn)
                    case Goodbye():
                        self._server.connection_ended(connection)
                    case Broken(error):
                        self._server.peer_broke_protocol(connection, error)
                    case Welcome() if connection.link is not None:
                        self._server.links.welcomed(connection, message, turn)
                    case Linked() if connection.link is not None:
                        self._server.links.handle(connection.link, message, turn)
                    case LinkAck(number) if connection.link is not None:
                        self._server.links.acknowledged(connection.link, number, turn)
                    case Credit(events, bytes) if connection.session is not None:
                        connection.session.deliveries.grant(events, bytes)
                        self._server.output.touch(connection.session)
                    case Ack(position) if connection.session is not None:
                        self._server.acknowledged(connection.session, position, turn)
                    case _ if connection.session is not None:
                        asked.append(
                            self._translated(
                                connection, connection.session, message, is_late=bool(wait_s)
                            )
                        )
        if asked:
            self._ask(asked, turn)
        return is_left

    def _translated(
        self,
        connection: ServedConnection,
        session: ClientSession,
        request: Any,
        *,
        is_late: bool,
    ) -> _Asked:
        """A request as messages for the broker; one that came too fast is refused."""
        each = _Asked(session, request)
        self._server.counters.requests[type(request).__name__] += 1
        try:
            if request.number <= session.handled:
                raise RoutingError(
                    f"request {request.number} comes after request {session.handled}; requests "
                    "are numbered in their order"
                )
            if session.is_durable and (problem := self._server.cannot_store()) is not None:
                raise problem
            if is_late:
                raise self._server.rates.too_many_requests()
            each.messages = list(self._messages(connection, session, request))
            count = max(1, len(each.messages))
            self._server.rates.took_requests(session.client.identity, count)
        except TidegateError as error:
            each.error = error
        session.handled = max(session.handled, request.number)
        return each

    def _messages(
        self, connection: ServedConnection, session: ClientSession, request: Any
    ) -> Iterable[m.Message]:
        match request:
            case wire.Subscribe():
                message = request.to_message()
                if request.replay_us is not None:
                    self._check_replay(session, request)
                if request.name is None and (pattern := _pattern(request.wanted)) is not None:
                    message = m.Subscribe(pattern, space=request.space)
                yield message
            case wire.SubscribeRows():
                yield from subscribe_messages(request, connection.wire.received_filters)
            case wire.Update():
                yield request.to_message(self._name(session, request.handle))
            case wire.Cancel(_, handle):
                pattern = session.patterns.get(handle)
                if pattern is not None:
                    yield m.Unsubscribe(pattern)
                else:
                    yield m.Cancel(self._name(session, handle))
            case _ if isinstance(request, _PLAIN):
                yield request.to_message()
            case _:
                raise RoutingError(f"a client cannot send {type(request).__name__}")

    def _check_replay(self, session: ClientSession, request: wire.Subscribe) -> None:
        if request.name is None:
            raise RoutingError("a replay is for a subscription with a name")
        self._server.replays.check(session)

    def _name(self, session: ClientSession, handle: int) -> str:
        """The name of a subscription of this client."""
        handles = self._server.broker.named.handles
        try:
            asker = handles.asker(handle - 1) if handle else None
        except IndexError:
            asker = None
        if asker is None or asker.client != session.client:
            raise RoutingError(f"you have no subscription with the handle {handle}")
        return asker.name

    def _ask(self, asked: list[_Asked], turn: Turn) -> None:
        server = self._server
        messages = [(each.session.client, message) for each in asked for message in each.messages]
        handled = server.broker.handle_requests(messages, server.now_us())
        place = 0
        for each in asked:
            count = len(each.messages)
            for index in range(place, place + count):
                if index in handled.errors:
                    each.errors[index - place] = handled.errors[index]
            place += count
            answer = self._answer(each)
            self._server.counters.refused_requests += isinstance(answer, wire.Refused)
            if each.session.is_durable and len(each.errors) < count:
                server.durable.save(each.session, each.messages, turn.transaction)
            turn.after_commit.append(self._answering(each.session, answer))
            if isinstance(answer, wire.Done) and isinstance(each.request, wire.Subscribe):
                self._begin_replay(each.session, each.request)
            if isinstance(each.request, wire.Depart) and not each.errors:
                server.lives.departed(each.session, turn)
        server.dispatch(handled.sent, turn)

    def _begin_replay(self, session: ClientSession, request: wire.Subscribe) -> None:
        """Begin a replay now, so that the events of this turn from here on are not in it."""
        if request.replay_us is not None and request.name is not None:
            self._server.replays.begin(session, request.name, request.replay_us)

    def _answering(
        self, session: ClientSession, answer: wire.Done | wire.Refused
    ) -> Callable[[], None]:
        return lambda: session.answer(answer, self._server.settings.limits.requests_max)

    def _answer(self, asked: _Asked) -> wire.Done | wire.Refused:
        number = asked.request.number
        error = asked.error or (asked.errors.get(0) if len(asked.messages) == 1 else None)
        if error is not None and not isinstance(asked.request, wire.SubscribeRows):
            return wire.Refused(number, Problem.of(error))
        if asked.error is not None:
            return wire.Refused(number, Problem.of(asked.error))
        handles = [
            0 if index in asked.errors else self._handle(asked.session, message)
            for index, message in enumerate(asked.messages)
            if isinstance(message, m.Subscribe)
        ]
        problems = [(index, Problem.of(error)) for index, error in asked.errors.items()]
        return wire.Done(number, handles, problems)

    def _handle(self, session: ClientSession, message: m.Subscribe) -> int:
        """The handle of a subscription that was just made."""
        if isinstance(message.wanted, Pattern):
            # As the table holds it: this is how its matches come.
            granted = self._server.broker.grants.wanted(message.wanted, session.client)
            return session.add_pattern(granted)
        if message.name is None:
            return 0
        return self._server.broker.named.handle(session.client, message.name) + 1


def _filter_chars(message: object) -> int:
    """How long the filter in a request is."""
    texts = (getattr(message, name, None) for name in ("wanted", "filter", "advertisement"))
    return sum(len(each) for each in texts if isinstance(each, str))


def has_events(message: object) -> bool:
    """Whether a message is handled with the events of a turn."""
    return isinstance(message, Publish) or (
        isinstance(message, Linked) and isinstance(message.message, Notifications)
    )


def _pattern(text: str) -> Pattern | None:
    """The pattern that a text stands for; None for a filter."""
    if "then" not in text.lower():
        return None
    try:
        pattern = parse_pattern(text)
    except TidegateError:
        return None  # the broker says what is wrong
    return pattern if len(pattern.steps) > 1 else None
