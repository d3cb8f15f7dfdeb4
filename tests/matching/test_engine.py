"""The engine: everything that users do in one process, with every matcher."""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import (
    events_aimed_at,
    nodes,
    typed_events_aimed_at,
    typed_predicates,
    values,
)
from tidegate.errors import (
    BadValueError,
    EventError,
    FilterError,
    SpaceError,
    SubscriptionError,
    UnresolvedError,
    UnsetParameterWarning,
    VariableError,
)
from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.filters import Filter, parse
from tidegate.language.spaces import Space
from tidegate.language.syntax import Node
from tidegate.language.values import Value, to_us
from tidegate.matching.engine import Engine
from tidegate.matching.records import SubscriptionRecord
from tidegate.matching.registry import MATCHERS

START = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(params=sorted(MATCHERS))
def engine(request: pytest.FixtureRequest) -> Engine:
    return Engine(matcher=request.param, clock=lambda: START)


def test_subscribe_match_update_cancel(engine: Engine) -> None:
    sub = engine.subscribe("symbol = 'IBM' and price < :limit", limit=10.0)
    assert engine.match({"symbol": "IBM", "price": 9.5}) == [sub.id]
    sub.update(limit=5)
    assert engine.match({"symbol": "IBM", "price": 9.5}) == []
    sub.update({"limit": 30})
    assert engine.match({"symbol": "IBM", "price": 9.5}) == [sub.id]
    assert sub.id in engine
    sub.cancel()
    assert engine.match({"symbol": "IBM", "price": 9.5}) == []
    assert len(engine) == 0


def test_many_are_updated_or_none(engine: Engine) -> None:
    for id in ("a", "b"):
        engine.subscribe("price < :limit", id=id, limit=5)
    engine.update_batch({"a": {"limit": 9}, "b": {"limit": 8}})
    assert engine.match({"price": 8.5}) == ["a"]
    with pytest.raises(SubscriptionError, match="there is no subscription 'c'"):
        engine.update_batch({"a": {"limit": 1}, "c": {"limit": 1}})
    with pytest.raises(UnresolvedError, match="subscription 'b' has no parameter :least"):
        engine.update_batch({"a": {"limit": 1}, "b": {"least": 1}})
    with pytest.raises(BadValueError):
        engine.update_batch({"a": {"limit": 1}, "b": {"limit": [1]}})
    assert engine.match({"price": 8.5}) == ["a"]


def test_ids_are_given_or_made(engine: Engine) -> None:
    assert engine.subscribe("a = 1", id="s2").id == "s2"
    assert engine.subscribe("a = 1").id == "s1"
    assert engine.subscribe("a = 1").id == "s3"
    with pytest.raises(SubscriptionError, match="already is a subscription 's2'"):
        engine.subscribe("a = 1", id="s2")


def test_unknown_ids_are_refused(engine: Engine) -> None:
    event = {"a": 1}
    with pytest.raises(SubscriptionError, match="no subscription 'x'"):
        engine.update("x", a=1)
    with pytest.raises(SubscriptionError, match="no subscription 'x'"):
        engine.cancel("x")
    with pytest.raises(SubscriptionError, match="no subscription 'x'"):
        engine.get("x")
    with pytest.raises(SubscriptionError, match="no subscription 'x'"):
        engine.explain("x", event)


def test_bad_input_changes_nothing(engine: Engine) -> None:
    sub = engine.subscribe("price < :limit", limit=10)
    with pytest.raises(FilterError):
        engine.subscribe("price <")
    with pytest.raises(SubscriptionError, match="no parameter :limt; it has :limit"):
        engine.subscribe("price < :limit", limt=3)
    with pytest.raises(UnresolvedError, match="no parameter :other; it has :limit"):
        sub.update(limit=1, other=2)
    with pytest.raises(BadValueError, match="parameter :limit"):
        sub.update(limit=[1])
    with pytest.raises(EventError, match="'price'"):
        engine.match({"price": [1]})
    assert engine.match({"price": 9}) == [sub.id]
    assert len(engine) == 1


def test_a_parameter_without_a_value_matches_nothing_yet(engine: Engine) -> None:
    with pytest.warns(UnsetParameterWarning, match=":limit has no value"):
        sub = engine.subscribe("price < :limit")
    assert engine.match({"price": 1}) == []
    sub.update(limit=2)
    assert engine.match({"price": 1}) == [sub.id]
    sub.update(limit=None)
    assert engine.match({"price": 1}) == []


def test_a_parameter_named_like_an_argument(engine: Engine) -> None:
    sub = engine.subscribe("a = :id", parameters={"id": 7})
    assert engine.match({"a": 7}) == [sub.id]


def test_events_are_judged_at_their_time(engine: Engine) -> None:
    sub = engine.subscribe("x between -3 + t and 3 + t")
    second = START + timedelta(seconds=1)
    assert engine.match({"x": 4}) == []
    assert engine.match({"x": 4}, time=second) == [sub.id]
    assert engine.match(Event.of({"x": 4}, second)) == [sub.id]
    assert engine.match({"x": 4}, time=START - timedelta(seconds=1)) == []
    batch = engine.match_batch([Event.of({"x": 4}, second), Event.of({"x": 4})])
    assert batch.to_pylist() == [{"event": 0, "subscription": sub.id}]


def test_variables_take_effect_at_once(engine: Engine) -> None:
    sub = engine.subscribe("distance < :near * @max / @used", near=10)
    assert engine.match({"distance": 15}) == []
    engine.set_variables(max=100, used=50)
    assert engine.match({"distance": 15}) == [sub.id]
    engine.set_variables(used=100)
    assert engine.match({"distance": 15}) == []
    engine.set_variables(max=None)
    assert engine.match({"distance": 1}) == []


def test_a_moment_has_the_time_and_the_variables_of_then(engine: Engine) -> None:
    sub = engine.subscribe("x < :base + @more + t", base=1)
    engine.set_variables(more=2)
    later = Event.of({"x": 5}, START + timedelta(seconds=3))
    then = engine.moment(later)
    engine.set_variables(more=0)
    assert engine.match_at(later, then) == [sub.id]
    assert engine.match_at(later, engine.moment(later)) == []
    assert engine.moment().time_us == engine.moment(Event.of({})).time_us == to_us(START)


def test_batches_from_arrow(engine: Engine) -> None:
    engine.subscribe("symbol = 'IBM' and quote.price < 10", id="a")
    engine.subscribe("quote.price is not null", id="b")
    table = pa.table(
        {
            "symbol": pa.array(["IBM", None, "IBM"]).dictionary_encode(),
            "quote": [{"price": 9}, {"price": None}, {"price": 11}],
        }
    )
    found = engine.match_batch(table)
    assert found.schema.names == ["event", "subscription"]
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [
        (0, "a"),
        (0, "b"),
        (2, "b"),
    ]
    assert engine.match_batch(table.to_batches()[0]).num_rows == 3
    assert engine.match_batch(table.slice(0, 0)).num_rows == 0


def test_event_time_of_a_batch(engine: Engine) -> None:
    sub = engine.subscribe("x < t")
    table = pa.table({"x": [1, 1], "when": [START, START + timedelta(seconds=2)]})
    found = engine.match_batch(table, event_time="when")
    assert found.to_pylist() == [{"event": 1, "subscription": sub.id}]
    with pytest.raises(EventError, match="no column 'time'"):
        engine.match_batch(table, event_time="time")
    with pytest.raises(EventError, match="must be of timestamps"):
        engine.match_batch(table, event_time="x")
    with pytest.raises(EventError, match="event 1 has none"):
        engine.match_batch(pa.table({"when": [START, None]}), event_time="when")


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([[1]]), "a list is not a value"),
        (pa.array([b"x"]), "binary is not a value type"),
        (pa.array([2**64 - 1], pa.uint64()), "does not fit in 64 bits"),
        (pa.array([2**62], pa.timestamp("us")), "must lie in the years 1 to 9999"),
        (pa.array([-(2**62)], pa.timestamp("us", "UTC")), "must lie in the years 1 to 9999"),
        (pa.array([2**62], pa.timestamp("s")), "must lie in the years 1 to 9999"),
    ],
)
def test_columns_of_no_value_type_are_refused(column: Any, reason: str) -> None:
    engine = Engine()
    engine.subscribe("a = 1")
    with pytest.raises(EventError, match=f"column 'a': .*{reason}"):
        engine.match_batch(pa.table({"a": column}))


@pytest.mark.parametrize("filter", [5, None])
def test_what_is_no_filter(engine: Engine, filter: Any) -> None:
    with pytest.raises(FilterError, match="a filter is a string, not"):
        engine.subscribe(filter)


def test_subscribe_batch(engine: Engine) -> None:
    table = pa.table(
        {
            "id": ["a", "b", "c"],
            "filter": ["price < :limit", "price > 3", "price < :limit"],
            "params": ['{"limit": 5}', None, '{"limit": 2}'],
            "subscriber": ["desk-7", None, None],
        }
    )
    assert engine.subscribe_batch(table) == ["a", "b", "c"]
    assert sorted(engine.match({"price": 4})) == ["a", "b"]
    assert engine.get("a").subscriber == "desk-7"
    engine.update("c", limit=9)
    assert sorted(engine.match({"price": 4})) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": "x", "filter": "price <"}, "subscription 'x': .*value must follow"),
        ({"id": "x", "filter": None}, "row 1: filter: is missing"),
        ({"id": "ok", "filter": "a = 1"}, "already is a subscription 'ok'"),
        ({"id": "x", "filter": "a < :p", "params": '{"q": 1}'}, "no parameter :q"),
        ({"id": "x", "filter": "a < :p", "params": "{"}, "row 1: params"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_added(
    engine: Engine, row: dict[str, object], reason: str
) -> None:
    good = {"id": "ok", "filter": "a = 1", "params": None}
    with pytest.raises(SubscriptionError, match=reason):
        engine.subscribe_batch(pa.Table.from_pylist([good, {"params": None, **row}]))
    assert len(engine) == 0


def test_an_unknown_matcher_is_refused_with_the_choices() -> None:
    choices = ", ".join(sorted(MATCHERS))
    with pytest.raises(SubscriptionError, match=f"no matcher 'quantum'; there are {choices}$"):
        Engine(matcher="quantum")


def test_no_event_sees_half_of_an_update() -> None:
    """One thread moves a window of fixed width, others match: always one window is in force."""
    engine = Engine(clock=lambda: None)
    for number in range(600):
        engine.subscribe("a = 1 and b > :b", id=f"other{number}", b=number)
    sub = engine.subscribe("x >= :low and x < :high", low=0, high=10)
    table = pa.table({"x": [float(x) for x in range(1000)]})
    stop = threading.Event()
    wrong: list[int] = []

    def match() -> None:
        while not stop.is_set():
            count = engine.match_batch(table).num_rows
            if count != 10:
                wrong.append(count)

    threads = [threading.Thread(target=match) for _ in range(2)]
    for thread in threads:
        thread.start()
    for step in range(3000):
        low = step * 7 % 990
        sub.update(low=low, high=low + 10)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_subscriptions_come_and_go_while_others_match() -> None:
    engine = Engine(clock=lambda: None)
    steady = [engine.subscribe(f"a = {n} and b < 5", id=f"steady{n}").id for n in range(20)]
    table = pa.table({"a": [n % 20 for n in range(200)], "b": [1.0] * 200})
    stop = threading.Event()
    missing: list[int] = []

    def match() -> None:
        while not stop.is_set():
            found = engine.match_batch(table).to_pylist()
            count = sum(row["subscription"] in steady for row in found)
            if count != 200:
                missing.append(count)

    thread = threading.Thread(target=match)
    thread.start()
    for step in range(400):
        subs = [engine.subscribe(f"a = {n} and b < :b", b=n) for n in range(step % 7)]
        for sub in subs:
            sub.update(b=2)
            sub.cancel()
    stop.set()
    thread.join()
    assert missing == []
    assert len(engine) == 20


def test_a_batch_of_updates_ends_the_versions_of_cached_filters() -> None:
    engine = Engine(clock=lambda: None)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    engine.subscribe("x < :n + t", id="s", since=start, evolve=Cached(10.0), n=0)
    later = [start + timedelta(seconds=second) for second in (1, 2, 3)]
    assert engine.match({"x": 0.5}, time=later[0]) == ["s"]
    assert engine.match({"x": 1.5}, time=later[1]) == []  # it is as it was at 1 s
    engine.update_batch({"s": {"n": 0.25}})
    assert engine.match({"x": 3.0}, time=later[2]) == ["s"]


# -- in a space -----------------------------------------------------------------------------------


@pytest.fixture(params=sorted(MATCHERS))
def trades(request: pytest.FixtureRequest) -> Engine:
    space = Space("trades", {"symbol": str, "price": float, "volume": int, "at": datetime})
    return Engine(matcher=request.param, clock=lambda: START, space=space)


def test_subscriptions_are_checked_against_the_space(trades: Engine) -> None:
    with pytest.raises(FilterError) as raised:
        trades.subscribe("symbol = 'IBM' and prize < 10")
    assert str(raised.value) == (
        "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
        "  symbol = 'IBM' and prize < 10\n"
        "                     ^^^^^"
    )
    with pytest.raises(FilterError, match="compare it with a number, not :limit, a string"):
        trades.subscribe("price < :limit", limit="low")
    with pytest.raises(FilterError, match="`like` compares strings"):
        trades.subscribe(parse("price like '1%'"))
    records = [SubscriptionRecord("a", "price < 1"), SubscriptionRecord("b", "volume = 'x'")]
    with pytest.raises(SubscriptionError, match=r"(?s)^subscription 'b': volume is an .*\^\^\^$"):
        trades.subscribe_records(records)
    with pytest.raises(SubscriptionError, match="subscription 'b': volume is an integer"):
        trades.subscribe_batch(pa.table({"id": ["a", "b"], "filter": ["true", "volume = 'x'"]}))
    assert len(trades) == 0


def test_updates_are_checked_against_the_space(trades: Engine) -> None:
    trades.subscribe("price < :limit and at > :a + :b", id="a", limit=5, a=START, b=-1)
    trades.subscribe("price < :limit", id="b", limit=5)
    with pytest.raises(FilterError, match=r"(?s)not :limit, a string\n.*price < :limit"):
        trades.update("a", limit="low", b=-2)
    with pytest.raises(FilterError, match="not :a \\+ :b, which has no value"):
        trades.update("a", b=START)
    with pytest.raises(FilterError, match="not :limit, a boolean"):
        trades.update_batch({"b": {"limit": 9}, "a": {"limit": True}})
    with pytest.raises(SubscriptionError, match="there is no subscription 'c'"):
        trades.update("c", limit=1)
    assert trades.get("a").parameters == {"limit": 5, "a": START, "b": -1}
    assert trades.get("b").parameters == {"limit": 5}
    trades.update("a", a=None, b=START)
    trades.update_batch({"b": {"limit": 9}})
    assert trades.match({"price": 8}) == ["b"]


def test_events_are_checked_against_the_space(trades: Engine) -> None:
    trades.subscribe("price < 10", id="a")
    with pytest.raises(EventError, match="attribute 'price' is a float in space 'trades', not the"):
        trades.match({"price": "9"})
    with pytest.raises(EventError, match="has no attribute 'prize'"):
        trades.explain("a", {"prize": 9})
    events: list[Any] = [{"price": 9, "volume": 9.0}, {"price": 9.5, "volume": 9.5}]
    reason = "event 1: attribute 'volume' is an integer in space 'trades', not the float 9.5"
    for batch in (events, pa.Table.from_pylist(events)):
        with pytest.raises(EventError) as raised:
            trades.match_batch(batch)
        assert str(raised.value) == reason
    table = pa.table({"price": [1.0, 11.0], "volume": [None, 9.0], "venue": pa.nulls(2)})
    assert trades.match_batch(table).to_pylist() == [{"event": 0, "subscription": "a"}]


def test_a_space_grows_while_it_is_used(trades: Engine) -> None:
    assert trades.space is not None
    with pytest.raises(FilterError):
        trades.subscribe("venue = 'NYSE'")
    trades.space.add({"venue": str})
    sub = trades.subscribe("venue = 'NYSE'")
    assert trades.match({"venue": "NYSE"}) == [sub.id]


def test_a_filter_is_checked_as_it_was_written(trades: Engine) -> None:
    for text in ("true or prize = 1", "price < 1 or not prize is not null"):
        with pytest.raises(FilterError, match="has no attribute 'prize'"):
            trades.subscribe(text)
        with pytest.raises(SubscriptionError, match="'a': space 'trades' has no attribute 'prize'"):
            trades.subscribe_records([SubscriptionRecord("a", text)])
    assert len(trades) == 0


def test_strings_of_records_are_timestamps_where_the_space_has_one(trades: Engine) -> None:
    records = [
        SubscriptionRecord("late", "at > :p and symbol = :q", {"p": "2026-01-02", "q": "IBM"}),
        SubscriptionRecord("early", "at < :p + 60", {"p": "2026-01-02T00:00:00+01:00"}),
    ]
    trades.subscribe_records(records)
    assert trades.get("late").parameters == {"p": datetime(2026, 1, 2, tzinfo=UTC), "q": "IBM"}
    assert trades.match({"at": datetime(2026, 1, 3, tzinfo=UTC), "symbol": "IBM"}) == ["late"]
    assert trades.match({"at": datetime(2026, 1, 1, tzinfo=UTC), "symbol": "IBM"}) == ["early"]
    with pytest.raises(SubscriptionError) as raised:
        trades.subscribe_records([SubscriptionRecord("c", "at > :p", {"p": "soon"})])
    assert str(raised.value) == (
        "subscription 'c': parameter :p: 'soon' is not a timestamp; write it as "
        "2026-01-02T03:04:05Z (at is a timestamp in space 'trades')"
    )
    table = pa.table({"id": ["d"], "filter": ["at > :p"], "params": ['{"p": "2026-01-02"}']})
    assert trades.subscribe_batch(table) == ["d"]
    assert trades.get("d").parameters == {"p": datetime(2026, 1, 2, tzinfo=UTC)}
    # A string of Python stays one, as in an event, and is refused.
    with pytest.raises(FilterError, match="compare it with a timestamp, not :p, a string"):
        trades.update("d", p="2026-01-03")
    with pytest.raises(FilterError, match="compare it with a timestamp, not :p, a string"):
        trades.subscribe("at > :p", p="2026-01-03")
    with pytest.raises(FilterError, match="compare it with a timestamp, not :p, a string"):
        trades.update_batch({"d": {"p": "2026-01-03"}})


@pytest.mark.parametrize("space", ["trades", {"price": float}, 5])
def test_a_space_that_is_none(space: Any) -> None:
    with pytest.raises(SpaceError, match="the space of an engine is a Space, not "):
        Engine(space=space)


@pytest.mark.parametrize("since", ["noon", "", 7, 1e9, True])
def test_a_since_that_is_no_time_is_refused(since: Any) -> None:
    engine = Engine()
    with pytest.raises(SubscriptionError, match=r"^since: .*2026-01-02T03:04:05Z"):
        engine.subscribe("x < t", since=since)
    assert not len(engine)


def test_a_since_may_be_a_text() -> None:
    engine = Engine()
    subscription = engine.subscribe("x < t", since="2026-01-02T03:04:05Z")
    assert engine.get(subscription.id).since == to_us(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def test_threads_use_a_space_that_grows(trades: Engine) -> None:
    """Each attribute can be used as soon as it is declared."""
    space = trades.space
    assert space is not None
    wrong: list[BaseException] = []

    def use(thread: int) -> None:
        try:
            for number in range(30):
                name = f"x{thread}_{number}"
                with pytest.raises(FilterError, match="has no attribute"):
                    trades.subscribe(f"{name} = 1")
                with pytest.raises(EventError, match="has no attribute"):
                    trades.match({name: 1})
                space.add({name: int})
                trades.subscribe(f"{name} = 1", id=name)
                assert trades.match({name: 1}) == [name]
        except BaseException as error:  # noqa: BLE001 - shown by the test
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(trades) == 90


def saved(path: Path, space: Space | None) -> Path:
    engine = Engine(space=space)
    engine.subscribe("price < 5", id="a")
    for number in range(5):
        engine.subscribe("price < :p", id=f"p{number}", p=number)
    engine.subscribe("true", id="all")
    engine.subscribe("price is not null", id="any")
    engine.snapshot(path)
    return path


def test_a_restored_engine_has_the_space_of_the_snapshot(tmp_path: Path) -> None:
    space = Space("trades", {"price": float})
    space.add({"venue": str})
    restored = Engine.restore(saved(tmp_path / "s", space))
    assert restored.space is not None
    assert (restored.space.name, restored.space.attributes) == ("trades", space.attributes)
    assert sorted(restored.match({"price": 3.5})) == ["a", "all", "any", "p4"]
    with pytest.raises(EventError, match="is a float in space 'trades'"):
        restored.match({"price": "4"})
    with pytest.raises(FilterError, match="is a string in space 'trades'"):
        restored.subscribe("venue > 5")
    assert Engine.restore(saved(tmp_path / "t", None)).space is None


def test_a_restored_engine_can_have_another_space(tmp_path: Path) -> None:
    path = saved(tmp_path / "s", Space("trades", {"price": float}))
    for space in (Space("s", {"price": int}), Space("s", {"price": float, "venue": str})):
        restored = Engine.restore(path, space=space)
        assert restored.space is space
        assert sorted(restored.match({"price": 2})) == ["a", "all", "any", "p3", "p4"]
    restored = Engine.restore(saved(tmp_path / "t", None), space=space)
    assert restored.space is space


def test_a_snapshot_that_does_not_fit_the_given_space_is_refused(tmp_path: Path) -> None:
    engine = Engine()
    for number in range(20):
        engine.subscribe("price < :p", id=f"good{number}", p=number)
    engine.subscribe("price < :p", id="bad", p="low")
    engine.subscribe("venue = 'NYSE'", id="cancelled")
    engine.cancel("cancelled")
    path = tmp_path / "s"
    engine.snapshot(path)
    before = path.read_bytes()
    with pytest.raises(SubscriptionError) as raised:
        Engine.restore(path, space=Space("trades", {"price": float}))
    assert str(raised.value) == (
        f"{path}: subscription 'bad': price is a float in space 'trades'; compare it with a "
        "number, not :p, a string\n  price < :p\n          ^^"
    )
    with pytest.raises(SubscriptionError, match=r"s: subscription 'good0': space 't' has no attri"):
        Engine.restore(path, space=Space("t", {"venue": str}))
    assert path.read_bytes() == before
    engine.update("bad", p=5)
    engine.snapshot(path)
    assert len(Engine.restore(path, space=Space("trades", {"price": float}))) == 21


TYPED = {"a": float, "b": str, "c.d": datetime}
"""The types of the attributes in `typed_predicates`."""


@given(st.data(), st.lists(nodes(typed_predicates()), min_size=1, max_size=4))
def test_a_space_that_allows_everything_changes_no_answer(data: Any, trees: list[Node]) -> None:
    events = data.draw(st.lists(typed_events_aimed_at(*trees), min_size=1, max_size=4))
    matches = []
    for space in (None, Space("all", TYPED)):
        engine = Engine(matcher="naive", space=space)
        for tree in trees:
            engine.subscribe(Filter(tree))
        found = [sorted(engine.match(event)) for event in events]
        matches.append((found, engine.match_batch(events).to_pylist()))
    assert matches[0] == matches[1]


@given(st.data(), st.lists(nodes(), min_size=1, max_size=5))
def test_what_a_space_refuses_leaves_the_engine_unchanged(data: Any, trees: list[Node]) -> None:
    """The engine in a space answers like one without that got only what was accepted."""
    space = Space("some", TYPED)
    engine, expected = Engine(matcher="naive", space=space), Engine(matcher="naive")
    engine.subscribe("a < :p and b = :q", id="open", p=1, q="a")
    expected.subscribe("a < :p and b = :q", id="open", p=1, q="a")
    for number, tree in enumerate(trees):
        with contextlib.suppress(FilterError):
            engine.subscribe(Filter(tree), id=str(number))
            expected.subscribe(Filter(tree), id=str(number))
    update = data.draw(st.dictionaries(st.sampled_from(["p", "q"]), values))
    with contextlib.suppress(FilterError):
        engine.update("open", update)
        expected.update("open", update)
    fitting: list[dict[str, Value]] = []
    for event in data.draw(st.lists(events_aimed_at(*trees), max_size=4)):
        try:
            found = engine.match(event)
        except EventError:
            with pytest.raises(EventError):
                engine.match_batch([*fitting, event])
            continue
        assert sorted(found) == sorted(expected.match(event))
        fitting.append(event)
    assert engine.match_batch(fitting).to_pylist() == expected.match_batch(fitting).to_pylist()
    assert engine.get("open").parameters == expected.get("open").parameters


def test_names_of_variables_go_with_their_filters() -> None:
    engine = Engine(matcher="naive")
    engine.provide("late", lambda _: 7)
    for number in range(20):
        engine.subscribe(f"x < @v{number} + @late", id="s")
        with pytest.raises(SubscriptionError):
            engine.subscribe(f"x < @w{number}", id="s")
        with pytest.raises(SubscriptionError):
            engine.subscribe_records([SubscriptionRecord("s", f"x < @w{number}")])
        engine.cancel("s")
    assert len(engine._variables_used) == 0
    engine.subscribe_records(
        [SubscriptionRecord("s", "x < @late"), SubscriptionRecord("t", "x < 6")]
    )
    assert engine.match({"x": 6}) == ["s"]
    engine.cancel("t")
    assert engine.match({"x": 6}) == ["s"]
    assert len(engine._variables_used) == 1


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"subscriber": 5}, "subscriber: must be a string, not"),
        ({"subscriber": "\ud800"}, "subscriber: a string must be valid Unicode"),
        ({"id": 5}, "id: must be a string"),
        ({"id": "\ud800"}, "id: a string must be valid Unicode"),
        ({"id": ""}, "id: is empty"),
    ],
)
def test_names_that_no_snapshot_or_table_could_hold_are_refused(
    matcher: str, names: dict[str, Any], reason: str
) -> None:
    engine = Engine(matcher=matcher)
    with pytest.raises(SubscriptionError, match=reason):
        engine.subscribe("x < 1", **names)
    assert len(engine) == 0


def test_what_is_no_table_and_no_function_is_refused() -> None:
    engine = Engine()
    number: Any = 5
    with pytest.raises(SubscriptionError, match="subscriptions are an Arrow table, not int"):
        engine.subscribe_batch(number)
    with pytest.raises(EventError, match="events are a table or a list, not int"):
        engine.match_batch(number)
    with pytest.raises(VariableError, match="variable @v: a provider is a function of the time"):
        engine.provide("v", number)
