from __future__ import annotations

import json

from click.testing import CliRunner

from tidegate.cli import cli
from tidegate.experiments.parsing import market_filters, measure
from tidegate.language.parsing.bulk import BulkParser


def test_the_filters_are_the_same_for_one_seed() -> None:
    assert list(market_filters(50, seed=3)) == list(market_filters(50, seed=3))
    assert list(market_filters(50, seed=3)) != list(market_filters(50, seed=4))


def test_the_filters_have_a_few_shapes_and_values_of_their_own() -> None:
    texts = list(market_filters(1000))
    assert len(set(texts)) == len(texts)
    assert 10 < len({shape for shape, _ in BulkParser().read_many(texts)}) < 600


def test_both_methods_are_measured() -> None:
    bulk, one_by_one = measure(count=500, rounds=3)
    assert (bulk.method, bulk.filters) == ("bulk", 500)
    assert (one_by_one.method, one_by_one.filters) == ("one by one", 2)
    for speed in (bulk, one_by_one):
        assert 0 < speed.slowest_per_s <= speed.median_per_s <= speed.fastest_per_s


def test_the_command() -> None:
    arguments = ["bench", "parsing", "--filters", "50", "--rounds", "1"]
    text = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert text.exit_code == 0
    assert "one by one" in text.output
    rows = CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False)
    assert [json.loads(line)["method"] for line in rows.output.splitlines()] == [
        "bulk",
        "one by one",
    ]
