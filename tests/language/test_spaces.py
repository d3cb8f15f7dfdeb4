from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies
from support.golden import messages
from tidegate.errors import BadValueError, EventError, FilterError, SpaceError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.limits import Limits
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.spaces import Space
from tidegate.language.syntax import Node, predicates
from tidegate.language.values import Kind, Value

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
WIDE = Limits(length_chars_max=10**6, depth_max=100, disjuncts_max=10**6, cost_max=10**6)


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
        ("s", {"a": float | None}, "space 's', attribute 'a': float | None is no type of "
         "attributes; there are str, int, float, bool, datetime"),
        ("s", {"quote": {"bid": float}}, "space 's', attribute 'quote': attributes of nested "
         "objects have dotted names; declare 'quote.bid'"),
        ("\ud800", {}, "the name of a space cannot be '\\ud800': a string must be valid Unicode, "
         "without lone surrogates"),
        ("s", {"\ud800": int}, "space 's': the name of an attribute cannot be '\\ud800': "
         "a string must be valid Unicode, without lone surrogates"),
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


def test_a_space_grows_while_others_check() -> None:
    """What was declared before is accepted, and a refusal names no half of a declaration."""
    space = Space("s", {"a0": int})
    stop = threading.Event()
    declared = [0]
    wrong: list[BaseException] = []

    def check() -> None:
        try:
            while not stop.is_set():
                name = f"a{declared[0]}"
                space.check_event(Event({name: 1}))
                space.check_filter(Filter(parse_filter(f"{name} > 1")), text=f"{name} > 1")
                assert name in space.attributes
                assert space.misfit("b", 1) is not None
        except BaseException as error:  # noqa: BLE001 - shown by the test
            wrong.append(error)

    threads = [threading.Thread(target=check) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 500):
        space.add({f"a{number}": int})
        declared[0] = number
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_space_includes_another() -> None:
    space = Space("s", {"a": int, "b": str})
    assert space.includes(Space("t", {"a": int}))
    assert space.includes(Space("t", {}))
    assert not space.includes(Space("t", {"a": float}))
    assert not space.includes(Space("t", {"a": int, "c": str}))


def test_ten_thousand_attributes() -> None:
    space = Space("s", {f"attribute{number}": float for number in range(10_000)})
    space.check_filter(parse("attribute9999 > 1"))
    space.check_event(Event({f"attribute{number}": 1.5 for number in range(4096)}))
    assert space.misfit("attribut9999", 1) == (
        "space 's' has no attribute 'attribut9999' (did you mean 'attribute9999'?)"
    )


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
    assert len(space.misfit("x" * 100_000, 1) or "") < 300
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
         "symbol is a string in space 'trades'; compare it with a string, not :p, "
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


def test_a_text_over_the_usual_limits(trades: Space) -> None:
    text = "price < 1 or " + " or ".join(["prize < 1"] * (Limits().disjuncts_max + 1))
    with pytest.raises(FilterError) as raised:
        trades.check_filter(parse(text, WIDE))
    assert (raised.value.start, raised.value.end) == (13, 18)


def test_a_boolean_that_is_true_is_no_truth(trades: Space) -> None:
    """Texts that look as if the parser had dropped something, and have not lost anything."""
    for text in ("open in (true, false)", "symbol not in ('or true') and open is not null",
                 "symbol = 'null' and not open = false"):  # fmt: skip
        trades.check_filter(Filter(parse_filter(text)), text=text)


# -- strings in JSON ------------------------------------------------------------------------------


TIME = "2026-01-02T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "given", "read"),
    [
        ("at > :p", {"p": TIME}, {"p": NOON}),
        ("at > :p - 60", {"p": TIME}, {"p": NOON}),
        ("at between :p and :q", {"p": TIME, "q": TIME}, {"p": NOON, "q": NOON}),
        ("at in (:p, :q)", {"p": TIME, "q": 5}, {"p": NOON, "q": 5}),
        ("at > :p + :q", {"p": TIME, "q": 5}, {"p": NOON, "q": 5}),
        ("symbol = :p and at > :q", {"p": TIME, "q": None}, {"p": TIME, "q": None}),
        ("at > now() - :p", {"p": "60"}, {"p": "60"}),
        ("price < :p and nowhere > :q", {"p": TIME, "q": TIME}, {"p": TIME, "q": TIME}),
    ],
)
def test_parameters_from_json(
    trades: Space, text: str, given: dict[str, Value | None], read: dict[str, Value | None]
) -> None:
    for filter in (Filter(parse_filter(text)), Filter.of_shape(*BulkParser().read(text))):
        assert trades.with_timestamps(filter, given) == read


def test_a_parameter_that_is_no_timestamp(trades: Space) -> None:
    with pytest.raises(BadValueError) as raised:
        trades.with_timestamps(parse("price < 1 and at > :p"), {"p": "soon"})
    assert str(raised.value) == (
        "parameter :p: 'soon' is not a timestamp; write it as 2026-01-02T03:04:05Z "
        "(at is a timestamp in space 'trades')"
    )


def test_events_from_json(trades: Space) -> None:
    read = trades.event_from_json(Event({"at": TIME, "symbol": TIME, "zz": TIME}, NOON))
    assert read == Event({"at": NOON, "symbol": TIME, "zz": TIME}, NOON)
    assert trades.event_from_json(Event({"at": 5})) == Event({"at": 5})
    with pytest.raises(EventError, match="attribute 'at': 'soon' is not a timestamp; write it as"):
        trades.event_from_json(Event({"at": "soon"}))


# -- properties ---------------------------------------------------------------------------------


TYPES: dict[Kind, type] = {
    Kind.BOOLEAN: bool, Kind.NUMBER: float, Kind.STRING: str, Kind.TIME: datetime,
}  # fmt: skip


@given(st.data(), strategies.nodes(strategies.predicates(strategies.expressions())))
def test_a_filter_fits_by_its_shape_just_when_it_fits_by_its_text(data: Any, node: Node) -> None:
    names = sorted({each.attribute for each in predicates(node)})
    types = data.draw(st.dictionaries(st.sampled_from([*names, "z"]), st.sampled_from([*TYPES])))
    space = Space("s", {name: TYPES[kind] for name, kind in types.items()})
    drawn = st.dictionaries(st.sampled_from(strategies.PARAMETERS), strategies.values)
    parameters = data.draw(drawn)
    filter = Filter(node)
    # Checked by its text because of the `not`, which the parser resolves.
    text = f"not (not ({filter}) and true)"
    refused = []
    for written in (None, text):
        try:
            space.check_filter(filter, parameters, text=written)
            refused.append(False)
        except FilterError:
            refused.append(True)
    assert refused[0] == refused[1]


@given(strategies.nodes(strategies.typed_predicates()))
def test_a_predicate_that_the_parser_drops_is_checked(node: Node) -> None:
    """Wherever it stands among others that fit."""
    space = Space("s", {"a": float, "b": str, "c.d": datetime})
    space.check_filter(Filter(node), text=f"({node}) or true")
    for text in (f"({node}) and (true or zz = 1)", f"({node}) and not zz is not null",
                 f"zz = 1 and false or ({node})"):  # fmt: skip
        with pytest.raises(FilterError) as raised:
            space.check_filter(Filter(parse_filter(text, WIDE)), text=text)
        place = text.index("zz")
        assert (raised.value.start, raised.value.end) == (place, place + 2)


def test_a_list_of_names_stays_short_and_on_one_line() -> None:
    space = Space("s", {"a" * 100_000: int, "two\nlines": int})
    reason = space.misfit("unlike", 1)
    assert reason is not None
    assert len(reason) < 500
    assert "\n" not in reason
