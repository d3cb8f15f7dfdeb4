"""The rules of the Rete network, checked for all of it."""

from __future__ import annotations

from collections import Counter

from tidegate.matching.rete import beta
from tidegate.matching.rete.alpha import AlphaNode
from tidegate.matching.rete.beta import BetaNetwork, Join
from tidegate.matching.rete.conditions import NeverCondition


def check_sound(network: BetaNetwork) -> None:
    """Every rule that alpha.py and beta.py state holds."""
    uses: Counter[AlphaNode] = Counter()
    for join in [network.root, *network]:
        for alpha, follower in join.followers.items():
            assert follower.alpha is alpha
            assert follower.before is join
        for chain in join.endings:
            assert chain.end is join
        if join is not network.root:
            uses[join.alpha] += 1
            through = sum(each.chains for each in join.followers.values())
            assert join.chains == through + len(join.endings) > 0
        check_fan(join)
    assert set(network.alphas) == set(uses)
    for alpha in network.alphas:
        assert alpha.uses == uses[alpha]
        assert network.alphas.find(alpha.condition) is alpha


def check_fan(join: Join) -> None:
    """There is a fan where there should be, and it has every follower but those never met."""
    if len(join.followers) > beta.FAN_MIN:
        assert join.fan is not None
    if len(join.followers) < beta.FAN_MIN // 2:
        assert join.fan is None
    if join.fan is None:
        return
    fan = join.fan
    held = [*fan._points.values(), *fan._asked.values()]
    held += [each for joins in fan._patterns.values() for each in joins.values()]
    held += [each for bands in fan._bands.values() for run in bands._runs for each in run.items]
    wanted = [
        each
        for each in join.followers.values()
        if not isinstance(each.alpha.condition, NeverCondition)
    ]
    assert Counter(map(id, held)) == Counter(map(id, wanted))
