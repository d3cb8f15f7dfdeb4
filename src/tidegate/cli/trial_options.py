"""What `tidegate backtest` tries out, as its options say it: a filter, changes, or a whole file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import click

from tidegate.errors import TidegateError
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.values import parse_timestamp
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.what_if import ALWAYS
from tidegate.matching.records import decode_object

NamedValues = tuple[tuple[str, str], ...]

_TIMESTAMP = re.compile(r"""\s*timestamp\s*(?P<quote>['"])(?P<text>.*)(?P=quote)\s*""", re.I)


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """The options that say what is tried."""

    filter: str | None
    params: str | None
    id: str | None
    subscriber: str | None
    set: NamedValues
    """Ids, and NAME=VALUE."""
    filter_of: NamedValues
    unsubscribe: tuple[str, ...]
    instead: str | None
    since: str | None

    def check(self, *, has_live: bool) -> None:
        """See that these options go together; raises UsageError."""
        changes = self.set or self.filter_of or self.unsubscribe
        if sum(map(bool, (self.filter is not None, changes, self.instead is not None))) != 1:
            raise click.UsageError(
                "say what to try: --filter, or --instead, "
                "or any of --set, --filter-of and --unsubscribe"
            )
        if self.filter is None:
            own = {"--params": self.params, "--id": self.id, "--subscriber": self.subscriber}
            for option, value in own.items():
                if value is not None:
                    raise click.UsageError(f"{option} goes with --filter")
            if not has_live:
                raise click.UsageError("give one of --subscriptions and --changes to compare with")
        if self.instead is not None and self.since is not None:
            raise click.UsageError("--since does not go with --instead; the file has its own times")

    def changes(self) -> list[Change]:
        """The changes that are tried; a new subscription is one of them."""
        with _said_of("--since"):
            time = ALWAYS if self.since is None else parse_timestamp(self.since)
        if self.filter is not None:
            return [self._new(time, self.filter)]
        updated: dict[str, dict[str, object]] = {}
        for id, filter in self.filter_of:
            if "filter" in updated.setdefault(id, {}):
                raise click.UsageError(f"--filter-of gives two filters to {id!r}")
            updated[id]["filter"] = filter
        for id, assignment in self.set:
            params = updated.setdefault(id, {}).setdefault("params", {})
            assert isinstance(params, dict)
            params.update([_assigned(assignment)])
        rows = [{"op": Op.UPDATE.value, "id": id, **more} for id, more in updated.items()]
        rows += [{"op": Op.UNSUBSCRIBE.value, "id": id} for id in self.unsubscribe]
        return [Change.of({"time": time, **row}) for row in rows]

    def _new(self, time: datetime, filter: str) -> Change:
        parse_filter(filter)  # its error shows the place
        with _said_of("--params"):
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


def _assigned(text: str) -> tuple[str, object]:
    """The name and the value of NAME=VALUE.

    A value is JSON, or a timestamp as a filter has it, which JSON has not; else it is a string.
    """
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"--set takes ID NAME=VALUE, and {text!r} is no NAME=VALUE")
    timestamp = _TIMESTAMP.fullmatch(value)
    if timestamp is not None:
        with _said_of("--set"):
            return name, parse_timestamp(timestamp["text"])
    try:
        return name, json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        return name, value


@contextmanager
def _said_of(option: str) -> Iterator[None]:
    """Name the option that an error is about."""
    try:
        yield
    except TidegateError as error:
        raise TidegateError(f"{option}: {error}") from None
