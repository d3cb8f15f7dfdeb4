"""The alpha network: every condition once, and which of them an event meets.

Rules. (1) Equal conditions are one node, however many joins use it; the node is removed with its
last use. (2) The condition of a node may be replaced in place, and its joins keep the node.

Theory of operation (Forgy, "Rete", Artificial Intelligence 19, 1982; EventJava, "Parametric
Subscriptions", 5.1). In Rete, alpha nodes test single facts, and join nodes combine facts. Here an
event is the only fact in the working memory and is gone when it has passed, so no node stores
facts.

Conditions that few events meet are found from the event: single values by hashing, and patterns by
the index of `string_patterns`, once for an event and an attribute. Any other condition is evaluated
by the joins that need it; joins with many followers keep ranges in an index (see `beta`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.language.algebra.intervals import Endpoint
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
    value_key,
)
from tidegate.matching.string_patterns import StringPatterns
from tidegate.matching.subscription import Moment


class AlphaNode:
    """A condition, shared by all joins that test it; ``uses`` is their number."""

    __slots__ = ("condition", "uses")

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.uses = 0

    def __repr__(self) -> str:
        return f"<AlphaNode {self.condition}, used {self.uses} times>"


_AlphaNodes = dict[AlphaNode, None]
"""A set of nodes in insertion order."""


class AlphaNetwork:
    """The alpha nodes of all conditions.

    >>> network = AlphaNetwork()
    >>> ibm = network.acquire(Points("symbol", frozenset({"IBM"})))
    >>> network.acquire(Points("symbol", frozenset({"IBM"}))) is ibm
    True
    """

    def __init__(self) -> None:
        self._nodes: dict[Condition, AlphaNode] = {}
        self._points: dict[str, dict[ValueKey, _AlphaNodes]] = {}
        self._patterns: dict[str, _PatternNodes] = {}

    def find(self, condition: Condition) -> AlphaNode | None:
        """The node of a condition, if there is one."""
        return self._nodes.get(condition)

    def acquire(self, condition: Condition) -> AlphaNode:
        """The node of a condition, with one more use; a new node if there is none."""
        node = self._nodes.get(condition)
        if node is None:
            node = self._nodes[condition] = AlphaNode(condition)
            self._index(node)
        node.uses += 1
        return node

    def release(self, node: AlphaNode) -> None:
        """Give up one use of a node."""
        node.uses -= 1
        if not node.uses:
            del self._nodes[node.condition]
            self._unindex(node)

    def change(self, node: AlphaNode, condition: Condition) -> None:
        """Replace the condition of a node by one that no node has yet."""
        del self._nodes[node.condition]
        self._unindex(node)
        node.condition = condition
        self._nodes[condition] = node
        self._index(node)

    def _index(self, node: AlphaNode) -> None:
        condition = node.condition
        if isinstance(condition, Points):
            by_value = self._points.setdefault(condition.attribute, {})
            for key in condition.points:
                by_value.setdefault(key, {})[node] = None
        elif isinstance(condition, PatternCondition):
            patterns = self._patterns.get(condition.attribute)
            if patterns is None:
                patterns = self._patterns[condition.attribute] = _PatternNodes()
            patterns.add(node, condition)

    def _unindex(self, node: AlphaNode) -> None:
        condition = node.condition
        if isinstance(condition, Points):
            by_value = self._points[condition.attribute]
            for key in condition.points:
                del by_value[key][node]
                if not by_value[key]:
                    del by_value[key]
            if not by_value:
                del self._points[condition.attribute]
        elif isinstance(condition, PatternCondition):
            patterns = self._patterns[condition.attribute]
            patterns.remove(condition)
            if not len(patterns):
                del self._patterns[condition.attribute]

    def met_points(self, attributes: Mapping[str, Value]) -> _AlphaNodes:
        """The nodes on single values that an event with these attributes meets."""
        met: _AlphaNodes = {}
        for name, value in attributes.items():
            by_value = self._points.get(name)
            if by_value is not None:
                met.update(by_value.get(value_key(value), {}))
        return met

    def met_patterns(self, attribute: str, value: Value | None) -> _AlphaNodes:
        """The nodes on patterns of one attribute that its value meets."""
        patterns = self._patterns.get(attribute)
        if patterns is None or not isinstance(value, str):
            return {}
        return dict.fromkeys(patterns.met(value))


class _PatternNodes:
    """The nodes on patterns of one attribute."""

    def __init__(self) -> None:
        self._index = StringPatterns()
        self._nodes: dict[int, AlphaNode] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, node: AlphaNode, pattern: PatternCondition) -> None:
        # The index gives equal patterns equal numbers; lookups are slow until it is flushed.
        self._nodes[self._index.number(pattern.operator, pattern.text)] = node
        self._index.flush()

    def remove(self, pattern: PatternCondition) -> None:
        del self._nodes[self._index.number(pattern.operator, pattern.text)]
        self._index.remove(pattern.operator, pattern.text)

    def met(self, text: str) -> list[AlphaNode]:
        return [self._nodes[number] for number in self._index.satisfied(text).tolist()]


class Fact:
    """An event at its moment, as the network sees it; each result is computed once and kept.

    ``met_points`` are the nodes on single values that the event meets.
    """

    __slots__ = (
        "_environments",
        "_kinds",
        "_met_patterns",
        "_moment",
        "_network",
        "attributes",
        "met_points",
    )

    def __init__(self, event: Event, moment: Moment, network: AlphaNetwork) -> None:
        self.attributes = event.attributes
        self.met_points = network.met_points(event.attributes)
        self._kinds = {name: kind_of(value) for name, value in event.attributes.items()}
        self._moment = moment
        self._network = network
        # Patterns are looked up only if a join needs them; single values come before them.
        self._met_patterns: dict[str, _AlphaNodes] = {}
        self._environments: dict[int | None, Environment] = {}

    def has(self, attribute: str, kind: Kind) -> bool:
        """Whether the event has an attribute with a value of that kind."""
        return self._kinds.get(attribute) is kind

    def met_patterns(self, attribute: str) -> _AlphaNodes:
        """The nodes on patterns of an attribute that the event meets."""
        met = self._met_patterns.get(attribute)
        if met is None:
            value = self.attributes.get(attribute)
            met = self._met_patterns[attribute] = self._network.met_patterns(attribute, value)
        return met

    def meets(self, node: AlphaNode) -> bool:
        """Whether the event meets the condition of a node."""
        # The most frequent class first, and `isinstance`: a `match` statement on the classes takes
        # several times as long, and this is the inner loop of matching.
        condition = node.condition
        if isinstance(condition, ValueRange):
            attribute = condition.attribute
            if self._kinds.get(attribute) is not condition.kind:
                return False
            value: Endpoint = self.attributes[attribute]
            high = condition.high
            return bool(condition.low <= value and (high is None or value < high))
        if isinstance(condition, OtherPredicate):
            environment = self._environment(condition.origin_us)
            return holds(condition.predicate, self.attributes, environment)
        if isinstance(condition, Points):
            return node in self.met_points
        if isinstance(condition, PatternCondition):
            return node in self.met_patterns(condition.attribute)
        return False

    def _environment(self, origin_us: int | None) -> Environment:
        """The environment of predicates whose `t` counts from a time; many of them share one."""
        environment = self._environments.get(origin_us)
        if environment is None:
            environment = self._moment.environment(origin_us)
            self._environments[origin_us] = environment
        return environment
