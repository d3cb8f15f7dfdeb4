"""Options of `tidegate backtest` that define the trial: a filter, changes, or another file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from reprlib import repr as shortened
from typing import NoReturn

import click

from tidegate.cli.option_errors import naming_option
from tidegate.language.filters import Filter, check_values
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.spaces import Space
from tidegate.language.values import parse_timestamp
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.versions import Version
from tidegate.matching.history.what_if import ALWAYS
from tidegate.matching.records import decode_object

NamedValues = tuple[tuple[str, str], ...]
"""The values of a repeated option with two arguments, of which the first is an id."""

_TIMESTAMP = re.compile(r"""\s*timestamp\s*(?P<quote>['"])(?P<text>.*)(?P=quote)\s*""", re.I)


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """The values of these options, as the user typed them."""

    filter: str | None
    params: str | None
    id: str | None
    subscriber: str | None
    set: NamedValues
    """Pairs of id and NAME=VALUE."""
    filter_of: NamedValues
    """Pairs of id and filter."""
    unsubscribe: tuple[str, ...]
    instead: str | None
    since: str | None

    def check(self, *, has_live: bool) -> None:
        """Refuse combinations that make no sense; raises UsageError."""
        changes = self.set or self.filter_of or self.unsubscribe
        if sum(map(bool, (self.filter is not None, changes, self.instead is not None))) != 1:
            raise click.UsageError(
                "say what to try: --filter, or --instead, "
                "or any of --set, --filter-of and --unsubscribe"
            )
        if self.filter is None:
            filter_options = {
                "--params": self.params,
                "--id": self.id,
                "--subscriber": self.subscriber,
            }
            for option, value in filter_options.items():
                if value is not None:
                    raise click.UsageError(f"{option} goes with --filter")
            if not has_live:
                raise click.UsageError("give one of --subscriptions and --changes to compare with")
        if self.instead is not None and self.since is not None:
            raise click.UsageError("--since does not go with --instead; the file has its own times")

    def changes(self) -> list[Change]:
        """The changes to try; a new subscription is a change too."""
        with naming_option("--since"):
            time = ALWAYS if self.since is None else parse_timestamp(self.since)
        if self.filter is not None:
            return [self._new_subscription(time, self.filter)]
        # All options with one id make one update: a filter and the parameters that it names must be
        # changed together.
        updates: dict[str, dict[str, object]] = {}
        for id, filter in self.filter_of:
            if "filter" in updates.setdefault(id, {}):
                raise click.UsageError(f"--filter-of gives two filters to {id!r}")
            updates[id]["filter"] = filter
        for id, assignment in self.set:
            params = updates.setdefault(id, {}).setdefault("params", {})
            assert isinstance(params, dict)
            params.update([_parse_assignment(assignment)])
        rows = [{"op": Op.UPDATE.value, "id": id, **fields} for id, fields in updates.items()]
        rows += [{"op": Op.UNSUBSCRIBE.value, "id": id} for id in self.unsubscribe]
        return [Change.of({"time": time, **row}) for row in rows]

    def _new_subscription(self, time: datetime, filter: str) -> Change:
        parse_filter(filter)  # its error shows the place in the filter, with a caret
        with naming_option("--params"):
            params = {} if self.params is None else decode_object(self.params)
        return Change.of(
            {
                "time": time,
                "op": Op.SUBSCRIBE.value,
                "id": "new" if self.id is None else self.id,
                "filter": filter,
                "params": params,
                "subscriber": self.subscriber,
            }
        )


def with_timestamps(
    changes: Sequence[Change], changed: Sequence[Version], space: Space
) -> list[Change]:
    """Changes with strings as timestamps where the space has them.

    ``changed`` are the versions that the changes make, which have the filters.
    """
    timed: list[Change] = []
    for change in changes:
        params = check_values("parameter :", change.params or {})
        for version in changed:
            if version.id == change.id:
                params = space.with_timestamps(Filter(parse_filter(version.filter)), params)
        timed.append(replace(change, params=params))
    return timed


def _parse_assignment(text: str) -> tuple[str, object]:
    """The name and the value of NAME=VALUE.

    A value is JSON, or a timestamp as in a filter, because JSON has none; any other text is a
    string, so that `symbol=IBM` needs no quotes.
    """
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"--set takes ID NAME=VALUE, and {text!r} is no NAME=VALUE")
    timestamp = _TIMESTAMP.fullmatch(value)
    if timestamp is not None:
        with naming_option("--set"):
            return name, parse_timestamp(timestamp["text"])
    try:
        return name, json.loads(value, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise click.UsageError(
            f"--set: the value of :{name} is not JSON: {shortened(value)}; a string is written in "
            f"double quotes, as '{name}=\"abc\"'"
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity, which JSON does not have and Python takes."""
    raise ValueError(name)
