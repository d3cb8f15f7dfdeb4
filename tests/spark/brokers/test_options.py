"""Options of streams from and to brokers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from support.broker_thread import broker
from tidegate.errors import ConnectorError
from tidegate.spark.brokers.options import BrokerOptions

URL = "tidegate://localhost:7070"


def test_their_values() -> None:
    assert BrokerOptions.of({"broker": URL}) == BrokerOptions((URL,))
    given = CaseInsensitiveDict(
        broker=f"{URL}, tidegates://b:1", IDENTITY="spark", token="s", ca="a", cert="c", key="k",
        timeout="2.5", space="market", filter="price < :limit", params='{"limit": 9.5}',
        maxeventsperbatch="7", onMismatch="null", failOnDataLoss="FALSE", producer="p", batch="3",
    )  # fmt: skip
    assert BrokerOptions.of(given) == BrokerOptions(
        (URL, "tidegates://b:1"), "spark", "s", "a", "c", "k", 2.5, "market", "price < :limit",
        {"limit": 9.5}, 7, True, False, "p", 3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"broker": " , "}, "option 'broker' is empty"),
        ({"broker": "localhost:7070"}, "option 'broker': 'localhost:7070' is not the URL"),
        ({"filter": "price <"}, "option 'filter': "),
        ({"params": "[1]"}, "option 'params': .*; write {\"limit\": 10}"),
        ({"timeout": "soon"}, "option 'timeout' is 'soon'; take seconds"),
        ({"timeout": "nan"}, "option 'timeout' is 'nan'"),
        ({"timeout": "0"}, "option 'timeout' is '0'"),
        ({"maxEventsPerBatch": "0"}, "option 'maxEventsPerBatch' is '0'"),
        ({"failOnDataLoss": "no"}, "option 'failOnDataLoss' is 'no'; take 'true' or 'false'"),
        ({"batch": "3"}, "give both options 'producer' and 'batch', or neither"),
    ],
)
def test_bad_ones(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ConnectorError, match=reason):
        BrokerOptions.of(CaseInsensitiveDict({"broker": URL, **options}))


def test_they_connect(tmp_path: Path) -> None:
    with broker(tmp_path) as url, BrokerOptions.of({"broker": url}).connect("spark") as client:
        assert (client.identity, client.broker) == ("spark", "a")
