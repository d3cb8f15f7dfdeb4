"""The experiments on bytes of summaries, with few subscriptions; see also `test_summary_runs`."""

from __future__ import annotations

import pytest

from tidegate.experiments import summaries
from tidegate.experiments.summaries import VARIANTS, SummaryVariant, modelled_crossings
from tidegate.experiments.summary_backbone import Backbone
from tidegate.simulation.overlays.paper_networks import isp24, summaries13

METHODS = [
    "broadcast", "broadcast along trees", "covering", "covering, one tree",
]  # fmt: skip


def test_a_row_for_each_method_and_number_of_new_subscriptions() -> None:
    told: list[str] = []
    rows = list(
        summaries.bandwidth(
            8, (4, 2), (0.5,), VARIANTS[:2], topology=summaries13(), progress=told.append
        )
    )
    assert [(row.new, row.method) for row in rows] == [
        *((new, method) for new in (2, 4) for method in METHODS),
        *((new, variant.name) for variant in VARIANTS[:2] for new in (2, 4)),
    ]
    by_method = {row.method: row for row in rows if row.new == 4}
    assert by_method["broadcast"].bytes > by_method["broadcast along trees"].bytes
    assert by_method["broadcast along trees"].bytes > by_method["covering"].bytes
    assert by_method["covering"].bytes > by_method["summaries"].bytes
    assert 0 < by_method["summaries"].messages <= 10  # 5, 8 and 11 send nothing
    assert all(0.2 < row.covered_share < 0.8 for row in rows)
    assert len(told) == 3


def test_what_is_covered_is_not_sent() -> None:
    rows = summaries.bandwidth(
        8, (3,), (1.0,), (VARIANTS[0], SummaryVariant("all", subsumption=False)),
        topology=summaries13(),
    )  # fmt: skip
    sent = {row.method: row for row in rows}
    assert sent["covering"].bytes == sent["covering"].messages == 0
    assert sent["summaries"].bytes == sent["summaries"].messages == 0
    assert sent["all"].bytes > 0


def test_the_paper_lets_each_broker_keep_back_a_share() -> None:
    backbone = Backbone(isp24())
    assert modelled_crossings(backbone, 0.0) == pytest.approx(24 * 23)
    assert 0 < modelled_crossings(backbone, 0.9) < modelled_crossings(backbone, 0.1) < 24 * 23


def test_storage() -> None:
    rows = {
        row.method: row
        for row in summaries.storage((8,), (0.5,), VARIANTS[:1], topology=summaries13())
    }
    assert list(rows) == ["broadcast", "covering", "covering, one tree", "summaries"]
    assert rows["broadcast"].bytes == 13 * rows["summaries"].home_bytes
    assert rows["broadcast"].bytes > rows["covering"].bytes > rows["summaries"].bytes
    assert rows["covering"].bytes >= rows["covering, one tree"].bytes
