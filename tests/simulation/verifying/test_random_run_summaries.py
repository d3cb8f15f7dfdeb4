"""Random runs of summaries: whatever the settings, and with brokers that handle them wrongly.

Each of these brokers must be found, or the checks are worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegate.language.filters import parse
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.matching.summary.budget import SummaryBudget
from tidegate.matching.summary.tables import RangeTable, SummaryTables
from tidegate.routing.messages import (
    Examination,
    Outgoing,
    Peer,
    Publication,
    SummaryReceived,
    SummaryUpdate,
    SummaryWithdrawal,
)
from tidegate.routing.outbox import NeighbourDelta
from tidegate.routing.summaries import plan
from tidegate.routing.summaries.examination import Examiner
from tidegate.routing.summaries.exchange import SummaryExchange
from tidegate.routing.summaries.own_summary import OwnSummary
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying import random_run
from tidegate.simulation.verifying.random_run import Mix, RandomRun
from tidegate.simulation.verifying.verification import VERIFIED_TOPOLOGIES
from tidegate.simulation.world import World

pytestmark = pytest.mark.slow

SETTINGS = {
    "at once": SummarySettings(period_us=0),
    "seldom": SummarySettings(period_us=3_000_000),
    "small batches": SummarySettings(period_us=3_000_000, batch_max=2),
    "one degree": SummarySettings(period_us=100_000, degree_max=1),
    "to hubs": SummarySettings(period_us=100_000, to_hubs=True),
    "to hubs of equal degrees": SummarySettings(degree_max=1, to_hubs=True, batch_max=2),
    "all filters": SummarySettings(period_us=100_000, subsumption=False),
    "short windows": SummarySettings(period_us=50_000, window_us=50_000),
    "one row": SummarySettings(period_us=50_000, budget=SummaryBudget(rows_max=1)),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("topology", VERIFIED_TOPOLOGIES)
def test_any_settings(topology: str, settings: SummarySettings) -> None:
    for seed in range(3):
        brokers = None if topology == "centralized" else 4 + 3 * seed
        run = RandomRun(
            generate(topology, brokers, seed), "summaries", seed, Mix(summaries=settings)
        )
        assert run.problems() == [], (topology, seed)


# -- wrong brokers -------------------------------------------------------------------------------

LOST = ("has missed", "0 times, not 1")
CHANGES = Mix(clients=4, rounds=2, actions=100, failures=False, moves=False, probes=6)
FAILURES = Mix(rounds=4, actions=40, moves=False)


def finds(*texts: str, mix: Mix = CHANGES, topology: str = "random-tree", seeds: int = 40) -> bool:
    """Whether one of some runs has a problem with one of the texts."""
    return any(
        text in problem
        for seed in range(seeds)
        for problem in RandomRun(generate(topology, 7, seed), "summaries", seed, mix).problems()
        for text in texts
    )


@pytest.fixture
def no_invariants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only deliveries are checked."""

    def nothing(_world: World) -> list[str]:
        return []

    monkeypatch.setattr(random_run, "broken_invariants", nothing)
    monkeypatch.setattr(random_run, "differences_from_fresh", nothing)


def lose_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker acknowledges differences and does not apply them."""

    def on_update(
        exchange: SummaryExchange, update: SummaryUpdate, peer: Peer, now_us: int
    ) -> Outgoing:
        held = exchange.held.get(peer)
        sent = right(exchange, update, peer, now_us)
        if held is not None and not update.brokers:
            exchange.held[peer] = held
        return sent

    right: Callable[..., Outgoing] = SummaryExchange.on_update
    monkeypatch.setattr(SummaryExchange, "on_update", on_update)


def list_a_broker_that_was_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    def known_bits(known: plan.Plan, broker: Peer) -> int:
        return right(known, broker) | 1

    right: Callable[..., int] = plan.Plan.known_bits
    monkeypatch.setattr(plan.Plan, "known_bits", known_bits)


def let_a_filter_go_before_those_it_covers_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes to light when a wider filter leaves has no row."""

    def change(own: OwnSummary, delta: NeighbourDelta[WantedFilter], now_us: int) -> int:
        if delta.removed:
            delta.added[:] = [(key, parse("false")) for key, _ in delta.added]
        return right(own, delta, now_us)

    right: Callable[..., int] = OwnSummary.change
    monkeypatch.setattr(OwnSummary, "change", change)


def let_rows_give_way_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row leaves with the first filter that is removed, although others have members in it."""
    forgetful: dict[int, int] = {}

    def change(own: OwnSummary, delta: NeighbourDelta[WantedFilter], now_us: int) -> int:
        forgetful[id(own)] = len(delta.removed)
        return right(own, delta, now_us)

    def tables(own: OwnSummary, now_us: int) -> SummaryTables:
        made = right_tables(own, now_us)
        if not forgetful.get(id(own)):
            return made
        kept = (without_first_row(each) for each in made.ranges)
        return replace(made, ranges=tuple(each for each in kept if len(each.lows)))

    right: Callable[..., int] = OwnSummary.change
    right_tables: Callable[..., SummaryTables] = OwnSummary.tables
    monkeypatch.setattr(OwnSummary, "change", change)
    monkeypatch.setattr(OwnSummary, "tables", tables)


def without_first_row(table: RangeTable) -> RangeTable:
    members = table.members[table.starts[1] :]
    starts = table.starts[1:] - table.starts[1]
    return replace(
        table, lows=table.lows[1:], highs=table.highs[1:], starts=starts, members=members
    )


def ignore_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def validity(_own: OwnSummary) -> tuple[()]:
        return ()

    monkeypatch.setattr(OwnSummary, "validity", validity)


def forget_missing_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers of which nothing is known are taken for ones that want nothing."""

    def refresh(examiner: Examiner) -> None:
        right(examiner)
        examiner._unknown = frozenset()

    right: Callable[..., None] = Examiner._refresh
    monkeypatch.setattr(Examiner, "_refresh", refresh)


FOUND_BY_DELIVERIES: dict[Callable[[pytest.MonkeyPatch], None], Mix] = {
    lose_differences: CHANGES,
    list_a_broker_that_was_not_examined: CHANGES,
    let_a_filter_go_before_those_it_covers_come: CHANGES,
    let_rows_give_way_too_early: CHANGES,
    ignore_windows: CHANGES,
    forget_missing_summaries: FAILURES,
}


@pytest.mark.parametrize("sabotage", FOUND_BY_DELIVERIES)
@pytest.mark.usefixtures("no_invariants")
def test_the_deliveries_find_it(
    sabotage: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)
    assert finds(*LOST, mix=FOUND_BY_DELIVERIES[sabotage])


@pytest.mark.parametrize(
    ("sabotage", "problem"),
    [
        (lose_differences, "is not as it is now"),
        (let_rows_give_way_too_early, "is not as it is now"),
        (let_a_filter_go_before_those_it_covers_come, "its summary misses"),
        (ignore_windows, "its summary misses"),
    ],
)
def test_the_invariants_find_it(
    sabotage: Callable[[pytest.MonkeyPatch], None],
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sabotage(monkeypatch)
    assert finds(problem)


def test_a_parent_that_keeps_a_withdrawn_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_withdrawal(
        _exchange: SummaryExchange, message: SummaryWithdrawal, peer: Peer, _now_us: int
    ) -> Outgoing:
        return [(peer, SummaryReceived(message.number))]

    monkeypatch.setattr(SummaryExchange, "on_withdrawal", on_withdrawal)
    assert finds("holds the summaries of", mix=FAILURES)


def test_an_event_that_overtakes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who examines an event depends on what has arrived, as in the paper."""

    def examine(
        examiner: Examiner, publication: Publication, event: object, examination: object
    ) -> tuple[set[Peer], Examination | None]:
        owners, following = right(examiner, publication, event, examination)
        if following is None or not examiner._unknown:
            return owners, following
        known = examiner._exchange.plan
        examined = following.examined & ~known.bits(examiner._unknown)
        at = known.next_examiner(examiner._exchange.domain.me, examined)
        assert at is not None
        return owners - examiner._unknown, Examination(at, examined, known.digest)

    right: Callable[..., tuple[set[Peer], Examination | None]] = Examiner.examine
    monkeypatch.setattr(Examiner, "examine", examine)
    assert finds(*LOST, mix=FAILURES) or finds(*LOST, mix=CHANGES, topology="random-graph")
