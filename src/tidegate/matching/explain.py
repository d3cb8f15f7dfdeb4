"""Why an event did or did not match: each predicate with the values at that moment.

It evaluates the filter as the oracle does, predicate by predicate, so it agrees with every matcher;
it is for people who ask about one subscription, and never part of matching.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tidegate.language.events import Event
from tidegate.language.expressions import Environment, evaluate
from tidegate.language.semantics import compares, holds, satisfies
from tidegate.language.syntax import And, Node, Operator, Or, Predicate, Truth
from tidegate.language.values import Kind, Value, format_value, kind_of
from tidegate.matching.subscription import Moment, Subscription


@dataclass(frozen=True, slots=True)
class ExplainedPredicate:
    """A predicate, the values that it compared, and whether it holds.

    ``off`` is the distance by which a number missed the predicate (seconds for a timestamp): 0 if
    the predicate holds, None if there is no such distance.
    """

    text: str
    holds: bool
    value: Value | None
    operands: tuple[Value | None, ...]
    off: float | None

    @property
    def reason(self) -> str:
        """The values and the outcome in words."""
        if self.value is None:
            return "the event has no such attribute"
        undefined = [index for index, each in enumerate(self.operands) if each is None]
        if undefined and not self.holds:
            return f"value {format_value(self.value)}; the value to compare it with is undefined"
        shown = ", ".join("undefined" if o is None else format_value(o) for o in self.operands)
        against = f" against {shown}" if self.operands else ""
        kinds = {kind_of(each) for each in self.operands if each is not None}
        if not self.holds and kinds and kind_of(self.value) not in kinds:
            names = " or ".join(sorted(kind.value for kind in kinds))
            return (
                f"{format_value(self.value)}{against}: a {kind_of(self.value).value}, not a {names}"
            )
        missed = f", off by {self.off:g}" if self.off and not self.holds else ""
        return f"{format_value(self.value)}{against}{missed}"


@dataclass(frozen=True, slots=True)
class ExplainedGroup:
    """`and` or `or` over parts, and whether it holds; ``true`` and ``false`` have no parts."""

    joined_by: str
    holds: bool
    parts: tuple[ExplainedPredicate | ExplainedGroup, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a subscription did or did not match an event.

    ``in_force`` is whether the subscription had begun and not ended at that moment.
    """

    subscription: str
    matches: bool
    in_force: bool
    t: float
    tree: ExplainedPredicate | ExplainedGroup
    missing: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "matches" if self.matches else "does not match"
        lines = [f"subscription {self.subscription!r} {verdict} (t = {self.t:g} s)"]
        if not self.in_force:
            lines.append("  no   it was not in force at that time")
        lines += _lines(self.tree, 1)
        if self.missing:
            lines.append(f"missing from the event: {', '.join(self.missing)}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """The explanation as plain objects for JSON."""
        return {
            "subscription": self.subscription,
            "matches": self.matches,
            "in_force": self.in_force,
            "t": self.t,
            "missing": list(self.missing),
            "explanation": _json(self.tree),
        }


def explain(subscription: Subscription, event: Event, moment: Moment) -> Explanation:
    """Explain how an event compares with a subscription at a moment."""
    environment = subscription.environment(moment)
    node = subscription.filter.node
    missing = [each for each in subscription.filter.attributes if each not in event.attributes]
    return Explanation(
        subscription.id,
        subscription.lives(moment) and holds(node, event.attributes, environment),
        subscription.lives(moment),
        environment.t,
        _explain(node, event.attributes, environment),
        tuple(missing),
    )


def _explain(
    node: Node, attributes: Mapping[str, Value], environment: Environment
) -> ExplainedPredicate | ExplainedGroup:
    match node:
        case Truth(value):
            return ExplainedGroup("true" if value else "false", value, ())
        case And(parts) | Or(parts):
            explained = tuple(_explain(part, attributes, environment) for part in parts)
            joined_by = "and" if isinstance(node, And) else "or"
            return ExplainedGroup(joined_by, holds(node, attributes, environment), explained)
        case Predicate():
            found = attributes.get(node.attribute)
            operands = tuple(evaluate(operand, environment) for operand in node.operands)
            is_met = found is not None and satisfies(found, node.operator, list(operands))
            off = 0.0 if is_met else _distance(node.operator, found, operands)
            return ExplainedPredicate(str(node), is_met, found, operands, off)


def _distance(
    operator: Operator, value: Value | None, operands: tuple[Value | None, ...]
) -> float | None:
    """The distance of a value from satisfying an operator; None if there is no such number."""
    if value is None or kind_of(value) not in (Kind.NUMBER, Kind.TIME):
        return None
    gaps = [_gap(value, each) for each in operands if each is not None]
    distances = [gap for gap in gaps if gap is not None]
    if not distances:
        return None
    match operator:
        case Operator.BETWEEN:
            low, high = operands
            if compares(value, Operator.LESS, low):
                return _gap(value, low)
            return _gap(value, high)
        case Operator.NOT_EQUAL | Operator.NOT_IN:
            return None  # the value is equal; any other one would do
        case _:
            return min(distances)


def _gap(value: Value, operand: Value | None) -> float | None:
    """The distance between two numbers, or two timestamps in seconds; None for other kinds."""
    if isinstance(value, datetime) and isinstance(operand, datetime):
        return abs((value - operand).total_seconds())
    if isinstance(value, (bool, str, datetime)) or isinstance(operand, (bool, str, datetime)):
        return None
    return None if operand is None else float(abs(value - operand))


def _lines(part: ExplainedPredicate | ExplainedGroup, depth: int) -> list[str]:
    mark = "yes" if part.holds else "no "
    indent = "  " * depth
    if isinstance(part, ExplainedPredicate):
        return [f"{indent}{mark}  {part.text:<32}  {part.reason}"]
    if not part.parts:
        return [f"{indent}{mark}  {part.joined_by}"]
    head = "all of" if part.joined_by == "and" else "any of"
    return [f"{indent}{mark}  {head}", *(x for p in part.parts for x in _lines(p, depth + 1))]


def _json(part: ExplainedPredicate | ExplainedGroup) -> dict[str, object]:
    if isinstance(part, ExplainedGroup):
        return {
            "operator": part.joined_by,
            "holds": part.holds,
            "parts": [_json(each) for each in part.parts],
        }
    return {
        "predicate": part.text,
        "holds": part.holds,
        "value": _plain(part.value),
        "compared_with": [_plain(each) for each in part.operands],
        "off": part.off,
    }


def _plain(value: Value | None) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
