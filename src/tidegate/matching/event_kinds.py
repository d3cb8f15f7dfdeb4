"""What events have, compared with what filters ask for: attributes and kinds of values.

A filter on an attribute that no event has, or that compares a number with a string, is valid and
matches nothing. Whoever knows the events can say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tidegate.language.expression_kinds import kinds_of
from tidegate.language.nearest_names import nearest_name
from tidegate.language.shapes import Row
from tidegate.language.syntax import STRING_OPERATORS, Predicate, format_attribute
from tidegate.language.values import Kind
from tidegate.matching.subscription import Subscription


class EventKinds:
    """The attributes that some events have, each with the kinds of its values.

    ``advice`` says how an attribute, whose name replaces `{}`, becomes a timestamp.

    >>> from tidegate.language.filters import parse
    >>> events = EventKinds({"price": {Kind.NUMBER}}, "cast {} to timestamp")
    >>> list(events.misfits(Subscription("cheap", parse("prcie < 10"), {})))
    ['no event has the attribute prcie (did you mean price?)']
    """

    def __init__(self, kinds: Mapping[str, Collection[Kind]], advice: str) -> None:
        self._kinds = {name: frozenset(some) for name, some in kinds.items()}
        self._names = tuple(sorted(kinds))
        self._advice = advice

    def misfits(self, subscription: Subscription) -> Iterator[str]:
        """What a filter asks for that no event has."""
        shape, row = subscription.filter.shape_and_row
        for conjunction in shape.disjuncts:
            for predicate in conjunction:
                yield from self._misfits(predicate, row, subscription)

    def _misfits(self, predicate: Predicate, row: Row, subscription: Subscription) -> Iterator[str]:
        name = format_attribute(predicate.attribute)
        kinds = self._kinds.get(predicate.attribute)
        if kinds is None:
            nearest = nearest_name(predicate.attribute, self._names)
            meant = "" if nearest is None else f" (did you mean {format_attribute(nearest)}?)"
            yield f"no event has the attribute {name}{meant}"
            return
        what = " or ".join(f"a {each.value}" for each in Kind if each in kinds)
        if predicate.operator in STRING_OPERATORS and Kind.STRING not in kinds:
            yield f"{name} is {what} in all events, and `{predicate.operator.value}` takes strings"
            return
        for operand in predicate.operands:
            asked = kinds_of(operand, row, subscription.parameters)
            if not asked & kinds:
                compared = " or ".join(f"a {each.value}" for each in Kind if each in asked)
                yield (
                    f"{name} is {what} in all events, and is compared with "
                    f"{compared or 'what has no value'}{self._remedy(kinds, asked, name)}"
                )

    def _remedy(self, kinds: frozenset[Kind], asked: frozenset[Kind], name: str) -> str:
        """What would be right, where one side is a time and the other its text."""
        if Kind.STRING in kinds and asked == {Kind.TIME}:
            return f"; {self._advice.format(name)}"
        if Kind.TIME in kinds and asked == {Kind.STRING}:
            return "; a time is written timestamp '2026-01-02T03:04:05Z'"
        return ""
