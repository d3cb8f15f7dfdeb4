"""Files of subscriptions are added to an engine; the few bad ones among many are found."""

from __future__ import annotations

import pytest

from support.command_line import Folder
from tidegate import Engine, TidegateError
from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.hints import Hints
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.subscriptions import subscribe, subscribe_all
from tidegate.matching.records import SubscriptionRecord


@pytest.mark.parametrize("bad", [[], [0], [49], [3, 17, 18], list(range(50))])
def test_bad_subscriptions_are_returned_and_the_others_added(bad: list[int]) -> None:
    engine = Engine()
    some = [
        (number, SubscriptionRecord(f"s{number}", "x <" if number in bad else "x < 1"))
        for number in range(50)
    ]
    refused = subscribe(engine, some)
    assert [number for number, _ in refused] == bad
    assert all(f"subscription 's{number}': " in str(error) for number, error in refused)
    assert sorted(engine.match({"x": 0})) == sorted(
        f"s{number}" for number in range(50) if number not in bad
    )


def test_of_two_with_one_id_the_first_stays() -> None:
    engine = Engine()
    some = [(1, SubscriptionRecord("s", "x = 1")), (2, SubscriptionRecord("s", "x = 2"))]
    [(number, error)] = subscribe(engine, some)
    assert (number, str(error)) == (2, "there already is a subscription 's'")
    assert (engine.match({"x": 1}), engine.match({"x": 2})) == (["s"], [])


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_a_file_is_taken_some_at_a_time(
    folder: Folder, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.cli.files.subscriptions.AT_ONCE_MAX", at_once)
    rows: list[dict[str, object] | str] = [
        {"id": "a", "filter": "x < :p", "params": {"p": 1}},
        "",
        {"id": "a", "filter": "true"},
        {"id": "b"},
        {"id": "c", "filter": "x < 2"},
    ]
    folder.write("f.jsonl", rows)
    engine, bad = Engine(), BadLines(skip=False)
    subscribe_all(engine, InputFile(str(folder.path / "f.jsonl")), bad, Hints(), lambda _: None)
    assert sorted(engine.match({"x": 0})) == ["a", "c"]
    with pytest.raises(TidegateError, match=r"line 3: there already is .*\n.*line 4: filter: is"):
        bad.raise_errors()
