from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies
from support.golden import messages
from tidegate.errors import EventError, FilterError, SpaceError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.expressions import Environment, evaluate
from tidegate.language.filters import Filter, parse
from tidegate.language.limits import Limits
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.spaces import Space
from tidegate.language.syntax import Operator, Predicate, predicates
from tidegate.language.values import Kind, Value, kind_of

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def trades() -> Space:
    types = {"symbol": str, "price": float, "volume": int, "open": bool, "at": datetime}
    return Space("trades", {**types, "quote.bid": float})


# -- declarations -------------------------------------------------------------------------------


def test_attributes_are_added_and_may_be_declared_again(trades: Space) -> None:
    before = trades.attributes
    trades.add({"venue": str, "price": float})
    assert trades.attributes["venue"] is str
    assert "venue" not in before
    trades.check_event(Event.of({"venue": "NYSE"}))
    trades.check_filter(parse("venue like 'N%'"))


def test_a_type_is_never_changed_and_then_nothing_is_added(trades: Space) -> None:
    before = trades.attributes
    with pytest.raises(SpaceError) as raised:
        trades.add({"venue": str, "price": int})
    assert str(raised.value) == (
        "space 'trades', attribute 'price': it is a float already and cannot become an integer; "
        "declare another attribute"
    )
    assert trades.attributes == before


@pytest.mark.parametrize(
    ("name", "attributes", "reason"),
    [
        ("", {}, "the name of a space is a string, not empty; it is ''"),
        (5, {}, "the name of a space is a string, not empty; it is 5"),
        ("s", ["a"], "space 's': attributes are a mapping of names to types, not list"),
        ("s", {"": int}, "space 's': the name of an attribute is a string, not empty; it is ''"),
        ("s", {5: int}, "space 's': the name of an attribute is a string, not empty; it is 5"),
        ("s", {"a": bytes}, "space 's', attribute 'a': bytes is no type of attributes; there are "
         "str, int, float, bool, datetime"),
        ("s", {"a": "float"}, "space 's', attribute 'a': 'float' is no type of attributes; "
         "there are str, int, float, bool, datetime"),
    ],
)  # fmt: skip
def test_malformed_spaces(name: Any, attributes: Any, reason: str) -> None:
    with pytest.raises(SpaceError) as raised:
        Space(name, attributes)
    assert str(raised.value) == reason


def test_threads_add_at_once_and_the_first_type_stays() -> None:
    space = Space("s", {})
    kinds = [int, float, str, bool]
    refused: list[type] = []
    barrier = threading.Barrier(len(kinds))

    def add(kind: type) -> None:
        barrier.wait()
        for number in range(200):
            space.add({f"{kind.__name__}{number}": kind})
            try:
                space.add({f"shared{number}": kind})
            except SpaceError:
                refused.append(kind)

    threads = [threading.Thread(target=add, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(space.attributes) == 200 * len(kinds) + 200
    assert len(refused) == 200 * (len(kinds) - 1)


# -- events -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("symbol", "IBM"), ("price", 9.5), ("price", 9), ("price", float("inf")), ("volume", 9),
        ("volume", 9.0), ("open", True), ("at", NOON), ("quote.bid", 1), ("volume", -(2.0**70)),
    ],
)  # fmt: skip
def test_values_that_fit(trades: Space, name: str, value: Value) -> None:
    trades.check_event(Event({name: value}))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("symbol", 5, "attribute 'symbol' is a string in space 'trades', not the integer 5"),
        ("price", True, "attribute 'price' is a float in space 'trades', not the boolean True"),
        ("price", "9", "attribute 'price' is a float in space 'trades', not the string '9'"),
        ("volume", 9.5, "attribute 'volume' is an integer in space 'trades', not the float 9.5"),
        ("volume", float("inf"),
         "attribute 'volume' is an integer in space 'trades', not the float inf"),
        ("volume", True,
         "attribute 'volume' is an integer in space 'trades', not the boolean True"),
        ("open", 1, "attribute 'open' is a boolean in space 'trades', not the integer 1"),
        ("at", "2026-01-02",
         "attribute 'at' is a timestamp in space 'trades', not the string '2026-01-02'"),
        ("price", NOON, "attribute 'price' is a float in space 'trades', "
         "not the timestamp 2026-01-02T12:00:00+00:00"),
        ("prize", 9, "space 'trades' has no attribute 'prize' (did you mean 'price'?)"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit(trades: Space, name: str, value: Value, reason: str) -> None:
    with pytest.raises(EventError) as raised:
        trades.check_event(Event({"symbol": "IBM", name: value}))
    assert str(raised.value) == reason


def test_absent_attributes_are_allowed(trades: Space) -> None:
    trades.check_event(Event.of({}))
    trades.check_event(Event.of({"price": None, "volume": float("nan"), "no such": None}))
    trades.check_event(Event.of({"quote": {"bid": 9.5}}))


def test_a_message_lists_few_names_and_little_of_a_value() -> None:
    space = Space("s", {f"a{number}": int for number in range(100)})
    assert space.misfit("zzz", 1) == (
        "space 's' has no attribute 'zzz'; it has a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, ..."
    )
    assert len(space.misfit("a1", "x" * 100_000) or "") < 120
    assert Space("s", {}).misfit("a", 1) == "space 's' has no attribute 'a'; it has none"


# -- filters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "message"), messages("spaces"))
def test_error_messages(trades: Space, text: str, message: str) -> None:
    filters = [Filter(parse_filter(text)), Filter.of_shape(*BulkParser().read(text))]
    for filter in filters:
        with pytest.raises(FilterError) as raised:
            trades.check_filter(filter, text=text)
        assert str(raised.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "price < 10 and price >= 2.5 and volume = 2.5 and open = true and symbol < 'M'",
        "at > timestamp '2026-01-02T03:04:05Z' and at < now() + 60 and price < now() - now()",
        "symbol like :p and price < :q and volume < @load and open = @mode",
        "price between -3 + t and max(:q, 3) * 2 and at > :since + t",
        "symbol in ('a', :p) and quote.bid is not null and not open = false",
    ],
)
def test_filters_that_fit(trades: Space, text: str) -> None:
    trades.check_filter(Filter(parse_filter(text)))


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("price < :limit", {"limit": "low"},
         "price is a float in space 'trades'; compare it with a number, not :limit, a string\n"
         "  price < :limit\n          ^^^^^^"),
        ("price < :limit * 2", {"limit": "low"},
         "price is a float in space 'trades'; compare it with a number, not :limit * 2, "
         "which has no value\n  price < :limit * 2\n          ^^^^^^^^^^"),
        ("symbol starts with :p", {"p": 5},
         "symbol is a string in space 'trades'; compare it with a string, in quotes, not :p, "
         "a number\n  symbol starts with :p\n                     ^^"),
        ("at > :a - :b", {"a": NOON, "b": NOON},
         "at is a timestamp in space 'trades'; compare it with a timestamp, as timestamp "
         "'2026-01-02T03:04:05Z', not :a - :b, a number\n  at > :a - :b\n       ^^^^^^^"),
    ],
)  # fmt: skip
def test_parameters(trades: Space, text: str, parameters: dict[str, Value], message: str) -> None:
    filter = Filter(parse_filter(text))
    trades.check_filter(filter)  # without values everything may fit
    with pytest.raises(FilterError) as raised:
        trades.check_filter(filter, parameters)
    assert str(raised.value) == message


def test_the_first_problem_of_the_text_is_reported(trades: Space) -> None:
    """The shape has `a` before `zz`."""
    text = "zz = 1 and a = 1"
    with pytest.raises(FilterError, match="has no attribute 'zz'"):
        trades.check_filter(Filter.of_shape(*BulkParser().read(text)), text=text)


def test_patterns_and_advertisements(trades: Space) -> None:
    trades.check_filter(parse_pattern("price > 1 then symbol = 'a' within 3 s"))
    trades.check_filter(parse_advertisement("price > 1 and symbol is not null"))
    with pytest.raises(FilterError, match=r"(?s)\(did you mean 'price'\?\)\n.*\n {18}\^{5}$"):
        trades.check_filter(parse_pattern("volume > 1 then prize > 2"))
    with pytest.raises(FilterError, match="open is a boolean in space 'trades'"):
        trades.check_filter(parse_advertisement("price > 1 or open = 5"))


def test_a_text_over_the_usual_limits_is_underlined_as_a_whole(trades: Space) -> None:
    text = " or ".join(["prize < 1"] * (Limits().disjuncts_max + 1))
    wide = Limits(disjuncts_max=10**6, cost_max=10**6, length_chars_max=10**6)
    with pytest.raises(FilterError) as raised:
        trades.check_filter(parse(text, wide))
    assert (raised.value.start, raised.value.end) == (0, len(text))


# -- properties ---------------------------------------------------------------------------------


@given(st.data(), strategies.nodes(strategies.predicates(strategies.expressions())))
def test_a_filter_that_fits_is_refused_by_no_value_it_can_have(data: Any, node: Any) -> None:
    """The kinds of an expression include the kind of each value that it has."""
    parameters = data.draw(
        st.dictionaries(st.sampled_from(strategies.PARAMETERS), strategies.values)
    )
    variables = data.draw(st.dictionaries(st.sampled_from(strategies.VARIABLES), strategies.values))
    environment = Environment(parameters, variables, 1.5, NOON)
    for predicate in predicates(node):
        for operand in predicate.operands:
            value = evaluate(operand, environment)
            if value is None:
                continue
            types = {Kind.BOOLEAN: bool, Kind.NUMBER: float, Kind.STRING: str, Kind.TIME: datetime}
            space = Space("s", {predicate.attribute: types[kind_of(value)]})
            alone = Filter(Predicate(predicate.attribute, Operator.EQUAL, (operand,)))
            space.check_filter(alone, parameters)
