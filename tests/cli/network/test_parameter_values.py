from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from tidegate.cli.network.parameter_values import parse_values
from tidegate.errors import BadValueError


def test_values_are_json_or_else_text() -> None:
    texts = ["a=10", "b=1.5", "c=IBM", 'd="10"', "e=true", "f=null", "g=x=y", "h="]
    assert parse_values(texts) == {
        "a": 10, "b": 1.5, "c": "IBM", "d": "10", "e": True, "f": None, "g": "x=y", "h": "",
    }  # fmt: skip


def test_timestamps_are_written_as_in_a_filter() -> None:
    values = parse_values(["since=timestamp '2026-01-02T03:04:05Z'"])
    assert values == {"since": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}


@pytest.mark.parametrize("texts", [["limit"], ["=5"], ["a b=5"], ["a=1", "a=2"]])
def test_other_texts_are_usage_errors(texts: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse_values(texts)


@pytest.mark.parametrize("text", ["a=[1]", "a={}", "a=99999999999999999999", "a=timestamp 'now'"])
def test_other_values_are_errors(text: str) -> None:
    with pytest.raises(BadValueError):
        parse_values([text])
