"""The beta network: joins, each of which adds one condition to the joins before it.

Rules. (1) A chain of joins from the root is a conjunction; chains with equal first conditions share
the joins of these. (2) A join counts the chains that it belongs to, and is removed with the last of
them. (3) No two followers of a join have the same alpha node.

Theory of operation (Forgy, "Rete", 1982; "Parametric Subscriptions", 5.1 and 5.6: each subscription
is a chain of nodes). All conditions are on one event, so a join has no memory of partial matches:
it is active if the join before it is, and the event meets the condition of its alpha node. An event
goes down from the root along active joins only. A join with few followers tests each of them; one
with many has a *fan*, an index of its followers by their conditions.

A changed parameter changes a condition where it is in the chain. A join of one chain stays: its
alpha node gets the new condition in place if no other join uses it, else it gets another alpha
node. From a join of several chains a new one is split off; the joins further down that belong to
this chain alone are moved below it as they are. So an update costs as much as the chain is long,
and a bisection where there is a fan; it does not depend on the number of subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.language.values import Kind
from tidegate.matching.rete.alpha import AlphaNetwork, AlphaNode, Fact
from tidegate.matching.rete.conditions import (
    Condition,
    NeverCondition,
    OtherPredicate,
    PatternCondition,
    Points,
    ValueRange,
)
from tidegate.matching.rete.range_index import RUN_MAX, RangeIndex

FAN_MIN = 8
"""Default number of followers above which a join has a fan; up to it, to test each is faster.

The fan is dropped below half of it, so that a join at the limit does not build and drop one with
every subscription that comes and goes.
"""


class Join:
    """A place in chains, with an alpha node.

    ``chains`` is the number of chains through this join or to it, ``endings`` are those that end
    here. ``before`` is the join that this one follows; that of the root is the root.
    """

    __slots__ = ("alpha", "before", "chains", "endings", "fan", "followers")

    def __init__(self, alpha: AlphaNode) -> None:
        self.alpha = alpha
        self.before = self
        self.followers: dict[AlphaNode, Join] = {}
        self.fan: Fan | None = None
        self.endings: dict[JoinChain, None] = {}
        self.chains = 0

    def __repr__(self) -> str:
        return f"<Join on {self.alpha.condition}, of {self.chains} chains>"


class Fan:
    """The followers of a join by their conditions, so that few of them are tested in vain.

    Conditions on single values and patterns are those that the alpha network found for the event,
    and ranges are found by the value. Only other predicates are evaluated one by one. Followers
    that no event meets are in none of the indexes.
    """

    __slots__ = ("_others", "_patterns", "_points", "_ranges", "_run_max")

    def __init__(self, followers: Iterable[Join], *, run_max: int = RUN_MAX) -> None:
        self._run_max = run_max
        self._points: dict[AlphaNode, Join] = {}
        self._patterns: dict[str, dict[AlphaNode, Join]] = {}
        self._ranges: dict[tuple[str, Kind], RangeIndex[Join]] = {}
        self._others: dict[AlphaNode, Join] = {}
        for follower in followers:
            self.add(follower)

    def add(self, join: Join) -> None:
        """Add a follower."""
        match join.alpha.condition:
            case Points():
                self._points[join.alpha] = join
            case PatternCondition(attribute):
                self._patterns.setdefault(attribute, {})[join.alpha] = join
            case ValueRange(attribute, kind, low, high):
                ranges = self._ranges.get((attribute, kind))
                if ranges is None:
                    ranges = self._ranges[attribute, kind] = RangeIndex(run_max=self._run_max)
                ranges.add(low, high, join)
            case OtherPredicate():
                self._others[join.alpha] = join
            case NeverCondition():
                pass  # never active, so there is nothing to find

    def remove(self, join: Join) -> None:
        """Remove a follower; its condition must still be the one with which it was added."""
        match join.alpha.condition:
            case Points():
                del self._points[join.alpha]
            case PatternCondition(attribute):
                joins = self._patterns[attribute]
                del joins[join.alpha]
                if not joins:
                    del self._patterns[attribute]
            case ValueRange(attribute, kind, low, high):
                ranges = self._ranges[attribute, kind]
                ranges.remove(low, high)
                if not ranges:
                    del self._ranges[attribute, kind]
            case OtherPredicate():
                del self._others[join.alpha]
            case NeverCondition():
                pass

    def active(self, fact: Fact) -> list[Join]:
        """The followers whose conditions a fact meets."""
        active = _joins_on(fact.met_points, self._points)
        for attribute, joins in self._patterns.items():
            active += _joins_on(fact.met_patterns(attribute), joins)
        for (attribute, kind), ranges in self._ranges.items():
            if fact.has(attribute, kind):
                active += ranges.containing(fact.attributes[attribute])
        active += [join for alpha, join in self._others.items() if fact.meets(alpha)]
        return active


def _joins_on(met: dict[AlphaNode, None], joins: dict[AlphaNode, Join]) -> list[Join]:
    """The joins whose alpha nodes are met, found by a walk over the smaller of the two."""
    if len(joins) < len(met):
        return [join for alpha, join in joins.items() if alpha in met]
    return [joins[alpha] for alpha in met if alpha in joins]


class JoinChain:
    """A conjunction of a subscription: the joins from the root to ``end``."""

    __slots__ = ("end", "id")

    def __init__(self, id: str, end: Join) -> None:
        self.id = id
        self.end = end


class BetaNetwork:
    """All joins, and the alpha network below them.

    A join with more than ``fan_min`` followers has a fan; ``run_max`` is that of the fans'
    `RangeIndex`.

    >>> from tidegate.language.values import Kind
    >>> network = BetaNetwork()
    >>> ibm, cheap = Points("symbol", frozenset({"IBM"})), ValueRange("price", Kind.NUMBER, 0, 10)
    >>> one, other = network.add("a", [ibm, cheap]), network.add("b", [ibm])
    >>> one.end.before is other.end
    True
    """

    def __init__(self, *, fan_min: int = FAN_MIN, run_max: int = RUN_MAX) -> None:
        self.fan_min = fan_min
        self._run_max = run_max
        self.alphas = AlphaNetwork()
        # The root has no condition and is active for every event; its alpha node, which nothing
        # tests, is not in the alpha network.
        self.root = Join(AlphaNode(NeverCondition("")))

    def add(self, id: str, conditions: Iterable[Condition]) -> JoinChain:
        """Add a chain of conditions for a subscription, in their order."""
        end = self.root
        for condition in conditions:
            end = self._follower(end, condition)
            end.chains += 1
        chain = JoinChain(id, end)
        end.endings[chain] = None
        return chain

    def remove(self, chain: JoinChain) -> None:
        """Remove a chain."""
        del chain.end.endings[chain]
        self._release(_path(chain.end))

    def change(self, chain: JoinChain, position: int, condition: Condition) -> None:
        """Replace the condition at a position of a chain."""
        # A chain is known by its end only, so that joins can be moved without telling their chains.
        path = _path(chain.end)
        join = path[position]
        if join.alpha.condition == condition:
            return
        if join.chains > 1 or not self._change_in_place(join, condition):
            self._split_off(chain, path, position, condition)

    def _change_in_place(self, join: Join, condition: Condition) -> bool:
        """Replace the condition of a join of one chain.

        Returns False, and does nothing, if another follower of the same join has the condition:
        by rule (3) the chain has to share that one.
        """
        before, alpha = join.before, join.alpha
        other = self.alphas.find(condition)
        if other in before.followers:
            return False
        if other is None and alpha.uses == 1:
            # A fan finds a follower by its condition: it is removed with the old one, and added
            # with the new one.
            if before.fan is not None:
                before.fan.remove(join)
            self.alphas.change(alpha, condition)
            if before.fan is not None:
                before.fan.add(join)
        else:
            # Other joins use the old alpha node, or the new condition already has one.
            self._detach(before, join)
            self.alphas.release(alpha)
            join.alpha = self.alphas.acquire(condition)
            self._attach(before, join)
        return True

    def _split_off(
        self, chain: JoinChain, path: list[Join], position: int, condition: Condition
    ) -> None:
        """Give a chain other joins from a position on, down to the first that is its own."""
        end = path[position].before
        left = path[position:]
        for index, join in enumerate(left):
            # From here on all joins belong to this chain alone: they move below the new ones.
            if index and join.chains == 1 and join.alpha not in end.followers:
                self._detach(join.before, join)
                self._attach(end, join)
                left = left[:index]
                break
            end = self._follower(end, condition if not index else join.alpha.condition)
            end.chains += 1
        else:
            # All joins down to the end were shared: the chain ends at another join now.
            del chain.end.endings[chain]
            chain.end = end
            end.endings[chain] = None
        self._release(left)

    def _follower(self, join: Join, condition: Condition) -> Join:
        """The follower of a join with a condition; a new one, of no chain yet, if there is none."""
        alpha = self.alphas.find(condition)
        follower = None if alpha is None else join.followers.get(alpha)
        if follower is None:
            follower = Join(self.alphas.acquire(condition))
            self._attach(join, follower)
        return follower

    def _attach(self, join: Join, follower: Join) -> None:
        """Add a follower to a join."""
        follower.before = join
        join.followers[follower.alpha] = follower
        if join.fan is not None:
            join.fan.add(follower)
        elif len(join.followers) > self.fan_min:
            join.fan = Fan(join.followers.values(), run_max=self._run_max)

    def _detach(self, join: Join, follower: Join) -> None:
        """Remove a follower from a join."""
        del join.followers[follower.alpha]
        if join.fan is not None:
            join.fan.remove(follower)
            if len(join.followers) < self.fan_min // 2:
                join.fan = None

    def _release(self, joins: list[Join]) -> None:
        """Count one chain less for some joins in the order of a path; remove those without any."""
        # From the end: a join without chains is removed only when it has no followers.
        for join in reversed(joins):
            join.chains -= 1
            if not join.chains:
                self._detach(join.before, join)
                self.alphas.release(join.alpha)

    def matching(self, fact: Fact) -> list[JoinChain]:
        """The chains all of whose conditions a fact meets."""
        found: list[JoinChain] = []
        waiting = [self.root]
        while waiting:
            join = waiting.pop()
            if join.endings:
                found += join.endings
            if join.fan is not None:
                waiting += join.fan.active(fact)
            else:
                for alpha, follower in join.followers.items():
                    if fact.meets(alpha):
                        waiting.append(follower)
        return found


def _path(end: Join) -> list[Join]:
    """The joins of a chain in their order, without the root."""
    path: list[Join] = []
    while end.before is not end:
        path.append(end)
        end = end.before
    return path[::-1]
