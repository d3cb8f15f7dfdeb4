"""The rules of the Rete network, checked for all of its nodes.

This module inspects private parts of the network on purpose, so that the tests need not: what is
shared, and what is left behind, is no part of any answer of the matcher.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from tidegate.matching.rete.alpha import AlphaNetwork, AlphaNode
from tidegate.matching.rete.beta import BetaNetwork, Fan, Join
from tidegate.matching.rete.conditions import NeverCondition
from tidegate.matching.rete.matcher import ReteMatcher
from tidegate.matching.rete.range_index import RangeIndex


def network_of(matcher: ReteMatcher) -> BetaNetwork:
    """The network of a matcher."""
    return matcher._network


def joins_of(network: BetaNetwork) -> list[Join]:
    """All joins but the root, each after the one that it follows."""
    joins: list[Join] = []
    waiting = deque(network.root.followers.values())
    while waiting:
        join = waiting.popleft()
        waiting += join.followers.values()
        joins.append(join)
    return joins


def alphas_of(network: AlphaNetwork) -> list[AlphaNode]:
    """All alpha nodes."""
    return list(network._nodes.values())


def sizes(network: BetaNetwork) -> tuple[int, int]:
    """The number of alpha nodes and the number of joins."""
    return len(alphas_of(network.alphas)), len(joins_of(network))


def indexed_patterns(network: AlphaNetwork, attribute: str) -> int:
    """How many patterns the index of an attribute holds, used or not."""
    return len(network._patterns[attribute]._index)


def runs_of(ranges: RangeIndex[Any]) -> list[tuple[int, Any]]:
    """The length and the reach of each run."""
    return [(len(run.keys), run.reach) for run in ranges._runs]


def check_empty(network: AlphaNetwork) -> None:
    """No node, and nothing in the indexes of an alpha network."""
    assert (network._nodes, network._points, network._patterns) == ({}, {}, {})


def check_empty_matcher(matcher: ReteMatcher) -> None:
    """Nothing is left of the subscriptions that a matcher had."""
    network = network_of(matcher)
    assert len(matcher) == 0
    assert sizes(network) == (0, 0)
    check_empty(network.alphas)
    assert matcher._plans == {}
    ranks = matcher._ranks
    assert (ranks._ranks, ranks._filter_counts) == ({}, {})


def check_sound(network: BetaNetwork) -> None:
    """Every rule that `alpha` and `beta` state holds."""
    uses: Counter[AlphaNode] = Counter()
    for join in [network.root, *joins_of(network)]:
        for alpha, follower in join.followers.items():
            assert follower.alpha is alpha
            assert follower.before is join
        for chain in join.endings:
            assert chain.end is join
        if join is not network.root:
            uses[join.alpha] += 1
            through = sum(follower.chains for follower in join.followers.values())
            assert join.chains == through + len(join.endings) > 0
        check_fan(join, network.fan_min)
    assert set(alphas_of(network.alphas)) == set(uses)
    for alpha, count in uses.items():
        assert alpha.uses == count
        assert network.alphas.find(alpha.condition) is alpha


def check_fan(join: Join, fan_min: int) -> None:
    """A join has a fan if it has many followers; it holds each that any event can meet, once."""
    if len(join.followers) > fan_min:
        assert join.fan is not None
    if len(join.followers) < fan_min // 2:
        assert join.fan is None
    if join.fan is None:
        return
    expected = [
        follower
        for follower in join.followers.values()
        if not isinstance(follower.alpha.condition, NeverCondition)
    ]
    assert Counter(map(id, _held(join.fan))) == Counter(map(id, expected))


def _held(fan: Fan) -> list[Join]:
    """The followers in all indexes of a fan."""
    held = [*fan._points.values(), *fan._others.values()]
    held += [join for joins in fan._patterns.values() for join in joins.values()]
    held += [join for ranges in fan._ranges.values() for run in ranges._runs for join in run.items]
    return held
