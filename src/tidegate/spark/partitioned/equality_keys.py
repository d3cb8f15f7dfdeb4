"""The attribute by which subscriptions and events are partitioned, and the values filters ask for.

Spark computes the bucket of an event and Python that of a subscription, so both hash the same text:
a value as Spark casts it to a string.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from tidegate.errors import BadValueError, SubscriptionError, TidegateError
from tidegate.language.expressions import ParameterRef, Slot
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.shapes import Row
from tidegate.language.syntax import Operator, Predicate
from tidegate.language.values import to_value
from tidegate.matching.history.versions import Version

# Values of these types have one string form each; floats and timestamps do not.
_KEY_TYPES = (t.StringType, t.ByteType, t.ShortType, t.IntegerType, t.LongType)

_Read = tuple[tuple[tuple[Predicate, ...], ...], Row]
"""The disjuncts and the row of a filter."""


class EqualityKeys:
    """Finds the attributes that filters fix by `=` or `in`, and the values they may have."""

    def __init__(self) -> None:
        self._parser = BulkParser()
        self._last: tuple[Version, _Read] | None = None
        """The version that was read last, because callers ask several things about it."""

    def attributes(self, version: Version) -> list[str]:
        """The attributes that every disjunct of a filter fixes."""
        disjuncts, _ = self._read(version)
        fixed = [
            {each.attribute for each in conjunction if _fixes_attribute(each)}
            for conjunction in disjuncts
        ]
        return sorted(set.intersection(*fixed)) if fixed else []

    def constrained(self, version: Version) -> set[str]:
        """All attributes that a filter names."""
        disjuncts, _ = self._read(version)
        return {each.attribute for conjunction in disjuncts for each in conjunction}

    def values(self, version: Version, attribute: str) -> set[object] | None:
        """The values with which a filter can match; None if some disjunct accepts others too."""
        disjuncts, row = self._read(version)
        values: set[object] = set()
        for conjunction in disjuncts:
            fixing = [
                each
                for each in conjunction
                if each.attribute == attribute and _fixes_attribute(each)
            ]
            if not fixing:
                return None
            # Of several predicates any one will do: an event must satisfy all of them.
            slots = [each.index for each in fixing[0].operands if isinstance(each, Slot)]
            try:
                values.update(_value(row[slot], version.params) for slot in slots)
            except BadValueError:
                return None  # a bad parameter; building the index reports it
        return values

    def texts(self, version: Version, attribute: str, *, is_string: bool) -> set[str]:
        """The values with which a filter can match, as Spark casts them to strings.

        Empty if the version may match any event. It is empty as well if it matches none: it must be
        in some index all the same, because building an index finds bad subscriptions.
        """
        values = self.values(version, attribute) or ()
        found = (_as_text(value, is_string) for value in values)
        return {text for text in found if text is not None}

    def _read(self, version: Version) -> _Read:
        if self._last is not None and self._last[0] is version:
            return self._last[1]
        try:
            shape, row = self._parser.read(version.filter)
            read: _Read = shape.disjuncts, row
        except TidegateError:
            read = ((),), ()  # fixes no attribute; building the index reports the error
        self._last = version, read
        return read


def _fixes_attribute(predicate: Predicate) -> bool:
    """Whether a predicate is an equality with constants or parameters, not with expressions."""
    return predicate.operator in (Operator.EQUAL, Operator.IN) and all(
        isinstance(operand, Slot) for operand in predicate.operands
    )


def _value(cell: object, params: Mapping[str, object]) -> object:
    return to_value(params.get(cell.name)) if isinstance(cell, ParameterRef) else cell


def _as_text(value: object, is_string: bool) -> str | None:
    """A value as Spark casts it to a string; None if no value of the column is equal to it."""
    if is_string:
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return str(int(value)) if value == value // 1 and abs(value) <= 2**63 else None


def most_used_attribute(versions: Iterable[Version], events: DataFrame) -> str | None:
    """The attribute that most filters fix, among those that are columns of the events."""
    eligible = {each.name for each in events.schema if isinstance(each.dataType, _KEY_TYPES)}
    keys = EqualityKeys()
    counts = Counter(
        name for version in versions for name in keys.attributes(version) if name in eligible
    )
    return counts.most_common(1)[0][0] if counts else None


def is_string_column(events: DataFrame, attribute: str) -> bool:
    """Whether a column that events are partitioned by is of strings; else it is of integers."""
    return isinstance(events.schema[attribute].dataType, t.StringType)


def check_attribute(events: DataFrame, attribute: str) -> None:
    """Check that events can be partitioned by an attribute."""
    if attribute not in events.columns:
        raise SubscriptionError(
            f"the events have no column {attribute!r} to be partitioned by; they have "
            f"{', '.join(events.columns)}"
        )
    kind = events.schema[attribute].dataType
    if not isinstance(kind, _KEY_TYPES):
        raise SubscriptionError(
            f"column {attribute!r} is of {kind.simpleString()}; events are partitioned by strings "
            "or integers"
        )
