"""The beta network: joins, each of what came before it with one more condition.

Rules. (1) A chain of joins from the root is a conjunction; chains that begin alike share the joins
of that beginning. (2) A join counts the chains that it belongs to, and is gone with the last of
them. (3) No two joins that follow the same one have the same alpha node.

Theory of operation. All conditions are on one event, so a join has nothing to remember: it is
active if the one before it is and the event meets the condition of its alpha node. An event goes
down from the root along active joins only. A join that few others follow asks each of them; one
with many followers has a *fan*, which finds those that are active by what their conditions are.

A condition of a chain is changed where it stands. A join of no other chain stays and gets the new
condition: its alpha node is changed in place if no other join uses it, and exchanged if one does.
From a join of several chains a new one is split off; what is further down and belongs to this chain
alone is hung below the new one as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

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
from tidegate.matching.rete.range_index import RangeIndex

FAN_MIN = 8
"""A join with more followers has a fan, until there are less than half as many."""


class Join:
    """A place in chains, with an alpha node.

    ``chains`` counts those that come through or end here, ``endings`` are those that end. The root
    stands before itself.
    """

    __slots__ = ("alpha", "before", "chains", "endings", "fan", "followers")

    def __init__(self, alpha: AlphaNode, before: Join | None = None) -> None:
        self.alpha = alpha
        self.before = before or self
        self.followers: dict[AlphaNode, Join] = {}
        self.fan: Fan | None = None
        self.endings: dict[JoinChain, None] = {}
        self.chains = 0

    def attach(self, follower: Join) -> None:
        """Let a join follow this one."""
        follower.before = self
        self.followers[follower.alpha] = follower
        if self.fan is not None:
            self.fan.add(follower)
        elif len(self.followers) > FAN_MIN:
            self.fan = Fan(self.followers.values())

    def detach(self, follower: Join) -> None:
        """Let a join follow this one no more."""
        del self.followers[follower.alpha]
        if self.fan is not None:
            self.fan.remove(follower)
            if len(self.followers) < FAN_MIN // 2:
                self.fan = None

    def __repr__(self) -> str:
        return f"<Join on {self.alpha.condition}, of {self.chains} chains>"


class Fan:
    """The followers of a join by what their conditions are, so that few are asked in vain.

    What the alpha network finds from an event is looked up, ranges are found by the value, and
    only what most events meet or what moves is asked one by one.
    """

    __slots__ = ("_asked", "_bands", "_patterns", "_points")

    def __init__(self, followers: Iterable[Join]) -> None:
        self._points: dict[AlphaNode, Join] = {}
        self._patterns: dict[str, dict[AlphaNode, Join]] = {}
        self._bands: dict[tuple[str, Kind], RangeIndex[Join]] = {}
        self._asked: dict[AlphaNode, Join] = {}
        for each in followers:
            self.add(each)

    def add(self, join: Join) -> None:
        """Take in a follower."""
        match join.alpha.condition:
            case Points():
                self._points[join.alpha] = join
            case PatternCondition(attribute):
                self._patterns.setdefault(attribute, {})[join.alpha] = join
            case ValueRange(attribute, kind, low, high):
                self._bands.setdefault((attribute, kind), RangeIndex()).add(low, high, join)
            case OtherPredicate():
                self._asked[join.alpha] = join
            case NeverCondition():
                pass

    def remove(self, join: Join) -> None:
        """Forget a follower whose condition is still the one it came with."""
        match join.alpha.condition:
            case Points():
                del self._points[join.alpha]
            case PatternCondition(attribute):
                alike = self._patterns[attribute]
                del alike[join.alpha]
                if not alike:
                    del self._patterns[attribute]
            case ValueRange(attribute, kind, low, high):
                bands = self._bands[attribute, kind]
                bands.remove(low, high)
                if not bands:
                    del self._bands[attribute, kind]
            case OtherPredicate():
                del self._asked[join.alpha]
            case NeverCondition():
                pass

    def active(self, fact: Fact) -> list[Join]:
        """The followers whose conditions a fact meets."""
        found = _common(self._points, fact.on_points)
        for attribute, joins in self._patterns.items():
            found += _common(joins, fact.on_patterns(attribute))
        for (attribute, kind), bands in self._bands.items():
            if fact.has(attribute, kind):
                found += bands.containing(fact.attributes[attribute])
        found += [join for alpha, join in self._asked.items() if fact.meets(alpha)]
        return found


def _common(joins: dict[AlphaNode, Join], met: dict[AlphaNode, None]) -> list[Join]:
    """The joins on nodes that are met, found from the fewer of both."""
    if len(joins) < len(met):
        return [join for alpha, join in joins.items() if alpha in met]
    return [joins[alpha] for alpha in met if alpha in joins]


class JoinChain:
    """A conjunction of a subscription, known by the join at its end."""

    __slots__ = ("end", "id")

    def __init__(self, id: str, end: Join) -> None:
        self.id = id
        self.end = end


class BetaNetwork:
    """All chains.

    >>> from tidegate.language.values import Kind
    >>> network = BetaNetwork()
    >>> ibm, cheap = Points("symbol", frozenset({"IBM"})), Band("price", Kind.NUMBER, 0, 10)
    >>> one, other = network.weave("a", [ibm, cheap]), network.weave("b", [ibm])
    >>> one.end.before is other.end
    True
    """

    def __init__(self) -> None:
        self.alphas = AlphaNetwork()
        self.root = Join(AlphaNode(NeverCondition("")))

    def __iter__(self) -> Iterator[Join]:
        """All joins but the root, each behind the one that it follows."""
        waiting = deque(self.root.followers.values())
        while waiting:
            join = waiting.popleft()
            waiting += join.followers.values()
            yield join

    def weave(self, id: str, conditions: Iterable[Condition]) -> JoinChain:
        """A new chain of conditions, in their order, for a subscription."""
        end = self.root
        for condition in conditions:
            end = self._follower(end, condition)
            end.chains += 1
        chain = JoinChain(id, end)
        end.endings[chain] = None
        return chain

    def unravel(self, chain: JoinChain) -> None:
        """Take a chain out."""
        del chain.end.endings[chain]
        self._leave(_path(chain.end))

    def change(self, chain: JoinChain, place: int, condition: Condition) -> None:
        """Give a chain another condition at one of its places."""
        path = _path(chain.end)
        join = path[place]
        if join.alpha.condition == condition:
            return
        if join.chains > 1 or not self._change_alone(join, condition):
            self._split(chain, path, place, condition)

    def _change_alone(self, join: Join, condition: Condition) -> bool:
        """Change the condition of a join that is of one chain, unless that makes it another's."""
        before, alpha = join.before, join.alpha
        other = self.alphas.find(condition)
        if other in before.followers:
            return False
        if other is None and alpha.uses == 1:
            if before.fan is not None:
                before.fan.remove(join)
            self.alphas.change(alpha, condition)
            if before.fan is not None:
                before.fan.add(join)
        else:
            before.detach(join)
            self.alphas.release(alpha)
            join.alpha = self.alphas.take(condition)
            before.attach(join)
        return True

    def _split(self, chain: JoinChain, path: list[Join], place: int, condition: Condition) -> None:
        """Let a chain go another way from a place on, until it has joins of its own again."""
        end = path[place].before
        left = path[place:]
        for index, join in enumerate(left):
            if index and join.chains == 1 and join.alpha not in end.followers:
                join.before.detach(join)
                end.attach(join)
                left = left[:index]
                break
            end = self._follower(end, condition if not index else join.alpha.condition)
            end.chains += 1
        else:
            del chain.end.endings[chain]
            chain.end = end
            end.endings[chain] = None
        self._leave(left)

    def _follower(self, join: Join, condition: Condition) -> Join:
        """The join that follows another with a condition; a new one, of no chain, if none does."""
        alpha = self.alphas.find(condition)
        found = None if alpha is None else join.followers.get(alpha)
        if found is None:
            found = Join(self.alphas.take(condition))
            join.attach(found)
        return found

    def _leave(self, joins: list[Join]) -> None:
        """Note that a chain goes through some joins, one after the other, no more."""
        for join in reversed(joins):
            join.chains -= 1
            if not join.chains:
                join.before.detach(join)
                self.alphas.release(join.alpha)

    def reached(self, fact: Fact) -> list[JoinChain]:
        """The chains whose conditions a fact meets."""
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
    """The joins of a chain in order, without the root."""
    path: list[Join] = []
    while end.before is not end:
        path.append(end)
        end = end.before
    return path[::-1]
