"""The alpha network: every condition on one attribute, once, and which of them an event meets.

Rules. (1) Equal conditions are one node, however many joins use it; it is gone with the last of
them. (2) A node may be given another condition in place, and its joins keep it.

Theory of operation (Forgy, "Rete", Artificial Intelligence 19, 1982). An event is the only fact in
the working memory, and forgotten when it has passed. Conditions that few events meet are found from
the event: those on single values by hashing, patterns by the index of texts.py, once for an event
and an attribute. Any other condition is asked of the event by the joins that need to know, and
wide joins keep those on ranges in order (beta.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.language.algebra.intervals import Endpoint as Bound
from tidegate.language.events import Event
from tidegate.language.expressions import Environment
from tidegate.language.semantics import holds
from tidegate.language.values import Kind, Value, kind_of
from tidegate.matching.rete.conditions import (
    Condition,
    OtherPredicate,
    PatternCondition,
    Points,
    ValueKey,
    ValueRange,
    point,
)
from tidegate.matching.string_patterns import StringPatterns
from tidegate.matching.subscription import Moment

_SPARE_PATTERNS = 64
"""The index of patterns is made anew when there are so many more in it than twice those in use."""


class AlphaNode:
    """A condition, shared by all joins that test it; ``uses`` says how many they are."""

    __slots__ = ("condition", "uses")

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.uses = 0

    def __repr__(self) -> str:
        return f"<AlphaNode {self.condition}, used {self.uses} times>"


_AlphaNodes = dict[AlphaNode, None]
"""A set of nodes, in the order in which they came."""


class AlphaNetwork:
    """The nodes of all conditions.

    >>> network = AlphaNetwork()
    >>> ibm = network.take(Points("symbol", frozenset({"IBM"})))
    >>> network.take(Points("symbol", frozenset({"IBM"}))) is ibm
    True
    """

    def __init__(self) -> None:
        self._nodes: dict[Condition, AlphaNode] = {}
        self._points: dict[str, dict[ValueKey, _AlphaNodes]] = {}
        self._patterns: dict[str, _PatternNodes] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[AlphaNode]:
        return iter(self._nodes.values())

    def find(self, condition: Condition) -> AlphaNode | None:
        """The node of a condition, if there is one."""
        return self._nodes.get(condition)

    def take(self, condition: Condition) -> AlphaNode:
        """The node of a condition, a new one if there is none, for one more use."""
        node = self._nodes.get(condition)
        if node is None:
            node = self._nodes[condition] = AlphaNode(condition)
            self._enter(node)
        node.uses += 1
        return node

    def release(self, node: AlphaNode) -> None:
        """Give up a use of a node."""
        node.uses -= 1
        if not node.uses:
            del self._nodes[node.condition]
            self._leave(node)

    def change(self, node: AlphaNode, condition: Condition) -> None:
        """Give a node another condition, which no node has yet."""
        del self._nodes[node.condition]
        self._leave(node)
        node.condition = condition
        self._nodes[condition] = node
        self._enter(node)

    def _enter(self, node: AlphaNode) -> None:
        condition = node.condition
        if isinstance(condition, Points):
            by_point = self._points.setdefault(condition.attribute, {})
            for each in condition.points:
                by_point.setdefault(each, {})[node] = None
        elif isinstance(condition, PatternCondition):
            self._patterns.setdefault(condition.attribute, _PatternNodes()).add(node, condition)

    def _leave(self, node: AlphaNode) -> None:
        condition = node.condition
        if isinstance(condition, Points):
            by_point = self._points[condition.attribute]
            for each in condition.points:
                del by_point[each][node]
                if not by_point[each]:
                    del by_point[each]
            if not by_point:
                del self._points[condition.attribute]
        elif isinstance(condition, PatternCondition):
            patterns = self._patterns[condition.attribute]
            patterns.remove(condition)
            if not len(patterns):
                del self._patterns[condition.attribute]

    def on_points(self, attributes: Mapping[str, Value]) -> _AlphaNodes:
        """The nodes on single values that an event meets."""
        found: _AlphaNodes = {}
        for name, value in attributes.items():
            by_point = self._points.get(name)
            if by_point is not None:
                found.update(by_point.get(point(value), {}))
        return found

    def on_patterns(self, attribute: str, value: Value | None) -> _AlphaNodes:
        """The nodes on patterns of one attribute that its value meets."""
        patterns = self._patterns.get(attribute)
        if patterns is None or not isinstance(value, str):
            return {}
        return dict.fromkeys(patterns.satisfied(value))


class _PatternNodes:
    """The nodes on patterns of one attribute.

    The index of patterns cannot forget; it is made anew when most of what it has is gone.
    """

    def __init__(self) -> None:
        self._index = StringPatterns()
        self._nodes: dict[int, AlphaNode] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, node: AlphaNode, pattern: PatternCondition) -> None:
        self._nodes[self._index.number(pattern.operator, pattern.text)] = node
        self._index.settle()

    def remove(self, pattern: PatternCondition) -> None:
        del self._nodes[self._index.number(pattern.operator, pattern.text)]
        if len(self._index) > 2 * len(self._nodes) + _SPARE_PATTERNS:
            index = StringPatterns()
            patterns = self._index.patterns()
            self._nodes = {
                index.number(*patterns[number]): node for number, node in self._nodes.items()
            }
            index.settle()
            self._index = index

    def satisfied(self, text: str) -> list[AlphaNode]:
        numbers = self._index.satisfied(text).tolist()
        return [self._nodes[number] for number in numbers if number in self._nodes]


class Fact:
    """An event at its moment, as the network sees it; what was found out once is not asked again.

    ``on_points`` are the nodes on single values that it meets.
    """

    __slots__ = (
        "_environments",
        "_kinds",
        "_moment",
        "_network",
        "_patterns",
        "attributes",
        "on_points",
    )

    def __init__(self, event: Event, moment: Moment, network: AlphaNetwork) -> None:
        self.attributes = event.attributes
        self.on_points = network.on_points(event.attributes)
        self._kinds = {name: kind_of(value) for name, value in event.attributes.items()}
        self._moment = moment
        self._network = network
        self._patterns: dict[str, _AlphaNodes] = {}
        self._environments: dict[int | None, Environment] = {}

    def has(self, attribute: str, kind: Kind) -> bool:
        """Whether an attribute is there and has a value of that kind."""
        return self._kinds.get(attribute) is kind

    def on_patterns(self, attribute: str) -> _AlphaNodes:
        """The nodes on patterns of an attribute that it meets."""
        found = self._patterns.get(attribute)
        if found is None:
            value = self.attributes.get(attribute)
            found = self._patterns[attribute] = self._network.on_patterns(attribute, value)
        return found

    def meets(self, node: AlphaNode) -> bool:
        """Whether it meets the condition of a node."""
        condition = node.condition
        if isinstance(condition, ValueRange):  # most are; `match` would take several times as long
            attribute = condition.attribute
            if self._kinds.get(attribute) is not condition.kind:
                return False
            value: Bound = self.attributes[attribute]
            high = condition.high
            return bool(condition.low <= value and (high is None or value < high))
        if isinstance(condition, OtherPredicate):
            environment = self._environment(condition.origin)
            return holds(condition.predicate, self.attributes, environment)
        if isinstance(condition, Points):
            return node in self.on_points
        if isinstance(condition, PatternCondition):
            return node in self.on_patterns(condition.attribute)
        return False

    def _environment(self, origin: int | None) -> Environment:
        found = self._environments.get(origin)
        if found is None:
            found = self._environments[origin] = self._moment.environment(origin)
        return found
