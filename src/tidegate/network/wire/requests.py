"""Requests of clients, and the answers to them.

Each request has a number, counted from 1 in a session, and is answered by `Done` or `Refused` with
this number. A broker handles requests in their order; answers may come in another.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.language.evolve import parse_evolve
from tidegate.network.wire.problems import TEXT_CHARS_MAX, Problem
from tidegate.network.wire.values import (
    Int64,
    Name,
    Number,
    SpaceName,
    WireValue,
    optional_values_of,
    values_of,
)
from tidegate.routing import messages as m

Text = Annotated[str, Meta(max_length=TEXT_CHARS_MAX)]
"""The text of a filter, pattern or advertisement."""
EvolveText = Annotated[str, Meta(max_length=100)]
Handle = Annotated[int, Meta(ge=0, le=2**32 - 1)]
"""The number by which a broker and its client name a subscription; 0 for those without a name."""


class Subscribe(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Subscribe`. `Done` has the handle of the subscription."""

    number: Number
    wanted: Text
    name: Name | None = None
    parameters: dict[Name, WireValue] = {}
    evolve: EvolveText | None = None
    version: Int64 = 0
    origin_us: Int64 | None = None
    confirm: bool = False
    space: SpaceName | None = None
    replay_us: Int64 | None = None
    """From when on stored events are delivered first; nil for no replay."""

    def to_message(self) -> m.Subscribe:
        """The message for the broker; raises a TidegateError for an evolve mode that is none."""
        return m.Subscribe(
            self.wanted,
            self.name,
            values_of(self.parameters),
            None if self.evolve is None else parse_evolve(self.evolve),
            self.version,
            self.origin_us,
            self.confirm,
            self.space,
        )


class SubscribeRows(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Many named subscriptions of one filter shape, which the client has defined before.

    `Done` has their handles, 0 for each that is refused, and why. As a routing message each of them
    is a `Subscribe` (see `filter_shapes.subscribe_messages`).
    """

    number: Number
    shape: Number
    names: list[Name]
    rows: list[list[WireValue]]
    """The row of each; a parameter is an extension of type 2."""
    parameters: list[dict[Name, WireValue]] = []
    """The values of the parameters of each; empty if none has parameters."""
    evolve: EvolveText | None = None
    first_version: Int64 = 0
    """The version of the first; each one after it has the next."""
    origin_us: Int64 | None = None
    confirm: bool = False
    space: SpaceName | None = None


class Update(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Update`."""

    number: Number
    handle: Handle
    version: Int64
    parameters: dict[Name, WireValue | None] = {}
    filter: Text | None = None
    confirm: bool = False

    def to_message(self, name: str) -> m.Update:
        """The message for the broker, with the name that the handle stands for."""
        values = optional_values_of(self.parameters)
        return m.Update(name, self.version, values, self.filter, self.confirm)


class Cancel(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Cancel`; also for a pattern."""

    number: Number
    handle: Handle


class Unsubscribe(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Unsubscribe`."""

    number: Number
    wanted: Text
    space: SpaceName | None = None

    def to_message(self) -> m.Unsubscribe:
        """The message for the broker."""
        return m.Unsubscribe(self.wanted, self.space)


class Advertise(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Advertise`."""

    number: Number
    advertisement: Text
    space: SpaceName | None = None

    def to_message(self) -> m.Advertise:
        """The message for the broker."""
        return m.Advertise(self.advertisement, self.space)


class Unadvertise(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Unadvertise`."""

    number: Number
    advertisement: Text
    space: SpaceName | None = None

    def to_message(self) -> m.Unadvertise:
        """The message for the broker."""
        return m.Unadvertise(self.advertisement, self.space)


class Suspend(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Suspend`."""

    number: Number

    def to_message(self) -> m.Suspend:
        """The message for the broker."""
        return m.Suspend()


class Resume(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Resume`."""

    number: Number
    home: Name | None = None
    moves: Number = 0

    def to_message(self) -> m.Resume:
        """The message for the broker."""
        return m.Resume(self.home, self.moves)


class Depart(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Depart`."""

    number: Number

    def to_message(self) -> m.Depart:
        """The message for the broker."""
        return m.Depart()


Request = (
    Subscribe | SubscribeRows | Update | Cancel | Unsubscribe | Advertise | Unadvertise
    | Suspend | Resume | Depart
)  # fmt: skip


# -- answers --------------------------------------------------------------------------------------


class Done(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A request was handled."""

    number: Number
    handles: list[Handle] = []
    """Of `Subscribe` one, of `SubscribeRows` one for each row."""
    problems: list[tuple[Number, Problem]] = []
    """The rows of `SubscribeRows` that were refused, by their index."""


class Refused(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A request was refused and has changed nothing."""

    number: Number
    problem: Problem


class InForce(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.InForce`."""

    handle: Handle
    version: Int64


class HeldSubscription(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A named subscription that the broker holds for a durable client."""

    handle: Handle
    name: Name
    filter: Text
    parameters: dict[Name, WireValue]
    evolve: EvolveText | None
    version: Int64
    origin_us: Int64 | None
    space: SpaceName | None


class Held(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The subscriptions of a durable client, after `Welcome`; the last of these frames says so.

    Sent where a durable identity connects in another session than before.
    """

    subscriptions: list[HeldSubscription]
    is_last: bool


class Missed(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Deliveries of this client were dropped, by its policy or because too many were kept."""

    count: Number


Answer = Done | Refused | InForce | Held | Missed
