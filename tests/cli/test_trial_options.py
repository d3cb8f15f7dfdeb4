"""The options that define the trial of a backtest: valid combinations, and their changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import pytest

from tidegate import FilterError, SubscriptionError, TidegateError
from tidegate.cli.trial_options import TrialOptions, with_timestamps
from tidegate.language.spaces import Space
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.versions import Version
from tidegate.matching.history.what_if import ALWAYS

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def options(**given: Any) -> TrialOptions:
    none: dict[str, Any] = dict.fromkeys(
        ["filter", "params", "id", "subscriber", "instead", "since"]
    )
    pairs: dict[str, Any] = dict.fromkeys(["set", "filter_of", "unsubscribe"], ())
    return TrialOptions(**{**none, **pairs, **given})


# -- which go together ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "has_live"),
    [
        ({"filter": "x = 1"}, False),
        ({"filter": "x = 1", "params": "{}", "id": "a", "subscriber": "b", "since": "now"}, True),
        ({"set": (("a", "p=1"),), "unsubscribe": ("b",), "filter_of": (("c", "x"),)}, True),
        ({"unsubscribe": ("b",), "since": "2026"}, True),
        ({"instead": "file"}, True),
    ],
)
def test_options_that_go_together(given: dict[str, Any], has_live: bool) -> None:
    options(**given).check(has_live=has_live)


@pytest.mark.parametrize(
    ("given", "has_live", "reason"),
    [
        ({}, True, "say what to try"),
        ({"filter": "x = 1", "instead": "file"}, True, "say what to try"),
        ({"filter": "x = 1", "set": (("a", "p=1"),)}, True, "say what to try"),
        ({"instead": "file", "unsubscribe": ("a",)}, True, "say what to try"),
        ({"unsubscribe": ("a",), "id": "b"}, True, "--id goes with --filter"),
        ({"instead": "file", "subscriber": "b"}, True, "--subscriber goes with --filter"),
        ({"unsubscribe": ("a",), "params": "{}"}, True, "--params goes with --filter"),
        ({"unsubscribe": ("a",)}, False, "give one of --subscriptions and --changes"),
        ({"instead": "file"}, False, "give one of --subscriptions and --changes"),
        ({"instead": "file", "since": "2026"}, True, "--since does not go with --instead"),
    ],
)
def test_options_that_do_not(given: dict[str, Any], has_live: bool, reason: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        options(**given).check(has_live=has_live)
    assert refused.value.message.startswith(reason)


# -- which changes they are -------------------------------------------------------------------


def test_a_filter_is_a_new_subscription() -> None:
    plain = options(filter="x < 1")
    assert plain.changes() == [Change(ALWAYS, Op.SUBSCRIBE, "new", "x < 1", {})]
    full = options(
        filter="x < :p", params='{"p": 1.5}', id="a", subscriber="b", since="2026-01-02T12:00:00Z"
    )
    assert full.changes() == [Change(NOON, Op.SUBSCRIBE, "a", "x < :p", {"p": 1.5}, "b")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("p=1", 1),
        ("p=-2.5e3", -2500.0),
        ("p=true", True),
        ("p=null", None),
        ('p="1"', "1"),
        ('p="a=b"', "a=b"),
        ("p=timestamp '2026-01-02T12:00:00Z'", NOON),
        ('p= TIMESTAMP"2026-01-02T13:00:00+01:00" ', NOON),
        ("""p="timestamp '2026-01-02T12:00:00Z'\"""", "timestamp '2026-01-02T12:00:00Z'"),
    ],
)
def test_a_value_is_json_or_a_timestamp(text: str, value: object) -> None:
    [change] = options(set=(("a", text),)).changes()
    assert change == Change(ALWAYS, Op.UPDATE, "a", params={"p": value})
    assert type((change.params or {})["p"]) is type(value)


def test_what_is_said_of_one_subscription_is_one_change() -> None:
    given = options(
        set=(("a", "p=1"), ("b", "p=2"), ("a", 'q="x"'), ("a", "p=3")),
        filter_of=(("a", "x < :p"),),
        unsubscribe=("c",),
        since="2026-01-02T12:00:00Z",
    )
    assert given.changes() == [
        Change(NOON, Op.UPDATE, "a", "x < :p", {"p": 3, "q": "x"}),  # the last value stays
        Change(NOON, Op.UPDATE, "b", params={"p": 2}),
        Change(NOON, Op.UNSUBSCRIBE, "c"),
    ]


# -- what is wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["p", "", "=1", "="])
def test_what_is_no_assignment(text: str) -> None:
    with pytest.raises(click.UsageError, match="--set takes ID NAME=VALUE"):
        options(set=(("a", text),)).changes()


@pytest.mark.parametrize(
    "text", ["p=IBM", "p=a=b", "p=", "p=NaN", "p=2026-01-02", "p=timestamp", "p=10O"]
)
def test_a_value_that_is_not_json(text: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        options(set=(("a", text),)).changes()
    assert caught.value.message == (
        f"--set: the value of :p is not JSON: {text[2:]!r}; a string is written in double quotes, "
        "as 'p=\"abc\"'"
    )


def test_two_filters_of_one_subscription() -> None:
    with pytest.raises(click.UsageError, match="--filter-of gives two filters to 'a'"):
        options(filter_of=(("a", "x < 1"), ("b", "x < 1"), ("a", "x < 2"))).changes()


@pytest.mark.parametrize(
    ("given", "error", "reason"),
    [
        ({"filter": "x <"}, FilterError, r"a value must follow '<', .*\n  x <\n     \^"),
        ({"filter": ""}, FilterError, "empty"),
        ({"filter": "x < :p", "params": "[1]"}, TidegateError, "^--params: must be a JSON object"),
        ({"filter": "x < :p", "params": '{"p": 1, "p": 2}'}, TidegateError, "^--params: .* twice"),
        ({"filter": "x < 1", "since": "soon"}, TidegateError, "^--since: 'soon' is not a timest"),
        ({"set": (("a", "p=timestamp 'soon'"),)}, TidegateError, "^--set: 'soon' is not a timest"),
        ({"filter": "x < 1", "id": ""}, SubscriptionError, "id: is empty"),
        ({"filter": "x < 1", "subscriber": ""}, SubscriptionError, "subscriber: is empty"),
        ({"unsubscribe": ("",)}, SubscriptionError, "id: is empty"),
        ({"filter_of": (("a", ""),)}, SubscriptionError, "filter: is empty"),
    ],
)
def test_the_option_that_is_wrong_is_named(
    given: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        options(**given).changes()


# -- in a space -----------------------------------------------------------------------------------


def test_strings_are_timestamps_where_the_space_has_one() -> None:
    space = Space("s", {"at": datetime, "symbol": str})
    day = datetime(2026, 1, 2, tzinfo=UTC)
    text = {"p": "2026-01-02"}
    changes = [
        Change(ALWAYS, Op.UPDATE, "a", params=text),
        Change(ALWAYS, Op.UPDATE, "b", params=text),
        Change(ALWAYS, Op.UNSUBSCRIBE, "c"),
    ]
    changed = [Version("a", "at > :p", text), Version("b", "symbol > :p", text)]
    timed = with_timestamps(changes, changed, space)
    assert [each.params for each in timed] == [{"p": day}, text, {}]
    with pytest.raises(TidegateError, match="parameter :p: 'soon' is not a timestamp"):
        with_timestamps([Change(ALWAYS, Op.UPDATE, "a", params={"p": "soon"})], changed, space)
