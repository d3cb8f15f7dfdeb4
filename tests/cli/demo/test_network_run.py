"""The network of the demo: three processes, whose deliveries are those that the filters mean."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.demo.market import Market
from tidegate.cli.demo.network_run import Delivery, run_network, show
from tidegate.language.filters import parse


class SmallMarket(Market):
    """Few subscriptions, which the oracle can judge."""

    def groups(self) -> dict[str, Any]:
        return {name: group[:20] for name, group in super().groups().items()}


def wanted(market: Market, changes: list[dict[str, Any]]) -> Counter[Delivery]:
    """The deliveries by definition, from the change log that the run has written."""
    updates = [each for each in changes if each["op"] == "update"]
    begun = [each for each in changes if each["op"] == "subscribe"]
    start = datetime.fromisoformat(updates[0]["time"]) - timedelta(minutes=1)
    found: Counter[Delivery] = Counter()
    for subscription in begun:
        filter, origin = parse(subscription["filter"]), datetime.fromisoformat(subscription["time"])
        for minute in range(3):
            values = dict(subscription["params"])
            if values:
                values["limit"] = market.limit(int(subscription["id"].split("-")[1]), minute)
            for event in market.minute(minute, start):
                assert event.time is not None
                t = (event.time - origin).total_seconds()
                if filter.matches(event, values, t=t):
                    found[int(str(event.attributes["n"])), subscription["id"]] += 1
    return found


@pytest.mark.slow
def test_deliveries_are_what_the_filters_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    market = SmallMarket(900, seed=7)
    with run_network(market, tmp_path) as run:
        show(run)
    assert run.deliveries == wanted(market, run.changes)
    assert {id.split("-")[0] for _, id in run.deliveries} == {"static", "parametric", "evolving"}
    assert (run.updates, run.dropped) == (40, 0)
    told = capsys.readouterr().out
    assert "900 quotes, each confirmed, through three brokers" in told
    assert "40 updates of parameters" in told
