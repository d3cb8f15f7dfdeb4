"""`tidegate pub`: publish events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from tidegate.cli.files.events import TimeAttributes
from tidegate.cli.network.client_options import connection_options, new_client
from tidegate.cli.status import print_status
from tidegate.errors import TidegateError
from tidegate.language.events import Event
from tidegate.matching.json_lines import decode_line, non_blank_lines
from tidegate.matching.records import decode_object

CHUNK_EVENTS = 1_000
"""Events of stdin that are published together; each chunk is confirmed before the next."""


@click.command()
@click.argument("events", nargs=-1, required=True, metavar="EVENT...")
@connection_options
@click.option("--confirm", is_flag=True, help="Wait until each event is safe on the broker's disk.")
@click.option("--space", metavar="NAME", help="Space of the events.")
@click.option("--event-time", metavar="NAME", help="Attribute with the time of each event.")
@click.option("--timestamps", metavar="NAMES", default="",
              help="Other attributes that are times: a,b,c.")  # fmt: skip
def pub(
    events: tuple[str, ...],
    confirm: bool,
    space: str | None,
    event_time: str | None,
    timestamps: str,
    **connection: Any,
) -> None:
    """Publish events: JSON objects, or - for JSON Lines on stdin.

    Without --confirm an event is sent at most once; with it, the command ends when all are stored.
    The first event that is wrong ends the command; those before it are published.

    \b
    Examples:
      tidegate pub '{"symbol": "IBM", "price": 9.5}'
      tidegate pub --confirm - < events.jsonl
    """
    if "-" in events and len(events) > 1:
        raise click.UsageError("- for stdin stands alone")
    times = TimeAttributes.from_options(event_time, timestamps)
    source = _stdin_events(times) if events == ("-",) else _argument_events(events, times)
    count = asyncio.run(_publish(source, confirm, space, connection))
    print_status(f"published {count} event{'' if count == 1 else 's'}")


async def _publish(
    source: Iterator[Event], confirm: bool, space: str | None, connection: dict[str, Any]
) -> int:
    count = 0
    async with new_client(**connection) as client:
        while True:
            # A wrong event must not keep back those before it.
            chunk, error = _next_chunk(source)
            if chunk:
                await client.publish_many(chunk, confirm=confirm, space=space)
                count += len(chunk)
            if error is not None:
                raise error
            if not chunk:
                break
        await client.drain(connection["timeout"])
    return count


def _next_chunk(source: Iterator[Event]) -> tuple[list[Event], TidegateError | None]:
    chunk: list[Event] = []
    try:
        chunk.extend(islice(source, CHUNK_EVENTS))
    except TidegateError as error:
        return chunk, error
    return chunk, None


def _argument_events(texts: tuple[str, ...], times: TimeAttributes) -> Iterator[Event]:
    for number, text in enumerate(texts, 1):
        try:
            yield times.to_event(decode_object(text))
        except TidegateError as error:
            raise TidegateError(f"event {number}: {error}") from None


def _stdin_events(times: TimeAttributes) -> Iterator[Event]:
    for number, line in non_blank_lines(sys.stdin.buffer):
        try:
            yield times.to_event(decode_line(line))
        except TidegateError as error:
            raise TidegateError(f"line {number} of stdin: {error}") from None
