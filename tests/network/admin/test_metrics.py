from __future__ import annotations

import asyncio
import re
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from support.admin_ports import admin
from support.pages import ROOT
from support.wire_client import WireClient
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Confirmed


def test_metrics_in_both_formats(tmp_path: Path) -> None:
    async def main() -> tuple[str, str]:
        async with admin(BrokerSettings("a", port=0, data=tmp_path)) as port:
            ann = await WireClient.connect(port.server.port, "ann")
            await ann.request(wire.Subscribe, "x > 0")
            ann.publish({"x": 1}, {"x": 0}, confirm=True)
            await ann.next(Confirmed)
            open_metrics = await port.get(
                "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
            )
            plain = await port.get("/metrics")
            await ann.close()
            assert plain.content_type == "text/plain"
            return open_metrics.body, plain.body

    open_text, text = asyncio.run(main())
    parsed = text_string_to_metric_families(open_text)  # type: ignore[no-untyped-call]
    assert {each.name for each in parsed}
    families = {each.name: each for each in plain_families(text)}
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert samples["tidegate_events_received_total", "client"] == 2
    assert samples["tidegate_events_confirmed_total",] == 2
    assert samples["tidegate_deliveries_total",] == 1
    assert samples["tidegate_clients", "connected"] == 1
    assert samples["tidegate_turn_duration_seconds_count",] > 0
    assert samples["tidegate_store_commit_duration_seconds_count",] > 0
    names = {sample.name for each in families.values() for sample in each.samples}
    assert_documented({each for each in names if each.startswith("tidegate_")})


def assert_documented(names: set[str]) -> None:
    """The table of docs/operations.md has just these metrics, and those that need a label."""
    page = (ROOT / "docs" / "operations.md").read_text()
    documented = set(re.findall(r"^\| `(tidegate_\w+)", page, re.MULTILINE))
    bare = {re.sub(r"_(bucket|count|sum|created)$", "", each) for each in names}
    assert bare - documented == set()
    without_samples = {"tidegate_events_passed_on_total", "tidegate_deliveries_missed_total",
                       "tidegate_link_up", "tidegate_link_unacknowledged_messages",
                       "tidegate_link_stored_events"}  # fmt: skip
    assert documented - bare == without_samples
