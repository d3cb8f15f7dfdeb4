"""`tidegate explain`: why does an event match a subscription, or why not?"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping

import click

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.events import TimeAttributes
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.subscriptions import read_subscriptions
from tidegate.cli.option_errors import naming_option
from tidegate.language.evolve import parse_evolve
from tidegate.language.values import format_value, parse_timestamp
from tidegate.matching.engine import Engine
from tidegate.matching.records import SubscriptionRecord, decode_object
from tidegate.matching.space_file import read_space


@click.command()
@click.option("--subscriptions", metavar="FILE", help="File of subscriptions.")
@click.option("--id", metavar="ID", help="Id of the subscription in that file.")
@click.option("--filter", metavar="FILTER", help="Instead of --subscriptions and --id: a filter.")
@click.option("--params", metavar="JSON", help="Parameters of the filter, by name.")
@click.option("--since", metavar="TIME", help="Start of the subscription, from which `t` counts.")
@click.option(
    "--evolve", metavar="MODE", help="Evolve mode of the filter: lazy, periodic 1 s, cached 1 s."
)
@click.option("--event", metavar="JSON", required=True, help="The event, as a JSON object.")
@click.option("--event-time", metavar="NAME", help="Attribute with the time of the event.")
@click.option("--time", metavar="TIME", help="Instead of --event-time: the time itself.")
@click.option(
    "--timestamps", metavar="NAMES", default="", help="Other attributes that are times: a,b,c."
)
@click.option(
    "--space", "space_file", metavar="FILE", help="Space that the event and the filter must fit."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(
    subscriptions: str | None,
    id: str | None,
    filter: str | None,
    params: str | None,
    since: str | None,
    evolve: str | None,
    event: str,
    event_time: str | None,
    time: str | None,
    timestamps: str,
    space_file: str | None,
    as_json: bool,
) -> None:
    """Explain why an event matches a subscription or not, predicate by predicate.

    Times are ISO 8601, in UTC unless they have an offset. Without them `t` is 0. The exit code is 0
    if the event matches, 1 if it does not.

    \b
    Examples:
      tidegate explain --filter "price < :limit" --params '{"limit": 3}' --event '{"price": 4}'
      tidegate explain --subscriptions wanted.jsonl --id desk-7 --event '{"price": 4}'
    """
    filter_options = {"--params": params, "--since": since, "--evolve": evolve}
    _check_usage(subscriptions, id, filter, filter_options, event_time, time)
    space = None if space_file is None else read_space(space_file)
    times = TimeAttributes.from_options(event_time, timestamps, space)
    with naming_option("--event"):
        parsed_event = times.to_event(decode_object(event))
        if space is not None:
            space.check_event(parsed_event)
    with naming_option("--time"):
        match_time = None if time is None else parse_timestamp(time)
    if subscriptions is not None and id is not None:
        record = _find(InputFile(subscriptions), id)
    else:
        record = _record(id or "filter", filter, params, since, evolve)
    # The oracle needs no compiled kernels, and no clock: without a time `t` is 0.
    engine = Engine(clock=lambda: None, matcher="naive", space=space)
    engine.subscribe_records([record])
    explanation = engine.explain(record.id, parsed_event, time=match_time)
    click.echo(_json(explanation.to_json()) if as_json else str(explanation))
    sys.exit(0 if explanation.matches else 1)


def _check_usage(
    subscriptions: str | None,
    id: str | None,
    filter: str | None,
    filter_options: Mapping[str, str | None],
    event_time: str | None,
    time: str | None,
) -> None:
    if (subscriptions is None) == (filter is None):
        raise click.UsageError("give one of --subscriptions and --filter")
    if subscriptions is not None and id is None:
        raise click.UsageError("--subscriptions needs --id")
    for option, value in filter_options.items():
        if subscriptions is not None and value is not None:
            raise click.UsageError(f"{option} goes with --filter; the file has its own")
    if event_time is not None and time is not None:
        raise click.UsageError("give one of --event-time and --time")


def _record(
    id: str, filter: str | None, params: str | None, since: str | None, evolve: str | None
) -> SubscriptionRecord:
    with naming_option("--params"):
        values = {} if params is None else decode_object(params)
    with naming_option("--since"):
        begin = None if since is None else parse_timestamp(since)
    with naming_option("--evolve"):
        mode = None if evolve is None else parse_evolve(evolve)
    return SubscriptionRecord(id, filter or "", values, since=begin, evolve=mode)


def _find(file: InputFile, id: str) -> SubscriptionRecord:
    """The subscription with an id; bad lines are skipped, because they may be of others."""
    for _, record in read_subscriptions(file, BadLines(skip=True), lambda _: None):
        if record.id == id:
            return record
    raise file.error(f"there is no subscription {id!r}")


def _json(explanation: dict[str, object]) -> str:
    return json.dumps(_finite(explanation), ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    """The value, with infinities as text, because JSON has none."""
    match value:
        case float() if math.isinf(value):
            return format_value(value)
        case dict():
            return {name: _finite(each) for name, each in value.items()}
        case list():
            return [_finite(each) for each in value]
    return value
