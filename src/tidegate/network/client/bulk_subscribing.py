"""Many subscriptions at once: filters of one shape cross the connection as rows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.errors import NetworkError, SubscriptionError, TidegateError
from tidegate.language.filters import Filter
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.shapes import Shape
from tidegate.network.client.inbox import Inbox
from tidegate.network.client.requesting import AfterLoss
from tidegate.network.client.subscription import Subscription
from tidegate.network.wire.requests import Done, SubscribeRows
from tidegate.network.wire.values import wire_cells, wire_value

if TYPE_CHECKING:
    from tidegate.network.client.client import Client

ROWS_MAX = 1_000
"""Rows of one request."""
TEXT_CHARS_MAX = 10_000
"""A longer filter is subscribed to by itself."""

Wanted = tuple[str, str, Mapping[str, Any]]
"""The name, filter and parameters of a subscription."""


async def subscribe_many(
    client: Client, wanted: Iterable[Wanted], inbox: Inbox, *, wait: bool
) -> list[Subscription]:
    """Subscribe to all; raises the error of the first that is refused, after all were answered."""
    parser, made = BulkParser(), []
    by_shape: dict[Shape, list[Subscription]] = {}
    registry = client.registry
    for name, text, parameters in wanted:
        if len(text) > TEXT_CHARS_MAX:
            raise SubscriptionError(
                f"the filter of {name!r} has {len(text)} characters, more than {TEXT_CHARS_MAX}; "
                "subscribe to it by itself"
            )
        filter = Filter.of_shape(*parser.read(text))
        registry.state.subscribe(name, filter, parameters, now_us=client.now_us())
        subscription = registry.add(name, inbox)
        if wait:
            subscription.will_wait(subscription.version)
        made.append(subscription)
        by_shape.setdefault(filter.shape_and_row[0], []).append(subscription)
    asked = []
    problems: list[TidegateError] = []
    for shape, subscriptions in by_shape.items():
        # A run of versions has no gaps: each row has the one after that of the row before.
        for chunk in _runs(subscriptions):
            await client.requests.room()
            asked.append(_ask(client, shape, chunk, problems, wait=wait))
    try:
        await asyncio.gather(*asked)
    except TidegateError:
        for subscription in made:
            if subscription.handle is None:
                registry.drop(subscription)
        raise
    if problems:
        raise problems[0]
    if wait:
        for subscription in made:
            await subscription.wait_in_force(subscription.version)
    return made


def _runs(subscriptions: list[Subscription]) -> Iterable[list[Subscription]]:
    run: list[Subscription] = []
    for each in subscriptions:
        if run and (each.version != run[-1].version + 1 or len(run) == ROWS_MAX):
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def _ask(
    client: Client,
    shape: Shape,
    chunk: list[Subscription],
    problems: list[TidegateError],
    *,
    wait: bool,
) -> asyncio.Future[Done]:
    """Send one request for subscriptions of one shape."""
    first, origin = chunk[0].version, chunk[0].named.subscription.origin
    rows = [wire_cells(each.filter.shape_and_row[1]) for each in chunk]
    parameters = [
        {name: wire_value(value) for name, value in each.parameters.items()} for each in chunk
    ]
    names = [each.name for each in chunk]

    def request(number: int) -> SubscribeRows:
        return SubscribeRows(
            number, client.filter_shape(shape), names, rows,
            parameters if any(parameters) else [], None, first, origin, wait,
        )  # fmt: skip

    def done(answer: Done) -> None:
        if len(answer.handles) != len(chunk):
            raise NetworkError("the broker has answered for another number of subscriptions")
        for subscription, handle in zip(chunk, answer.handles, strict=True):
            if handle:
                client.registry.bind(subscription, handle)
        for index, problem in answer.problems:
            problems.append(problem.to_error())
            if index < len(chunk):
                client.registry.drop(chunk[index])

    return client.requests.add(request, AfterLoss.RESTORED, done)
