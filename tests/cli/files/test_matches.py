from __future__ import annotations

import csv
import os
import stat
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command_line import Folder, pairs
from tidegate.cli.files import matches as module
from tidegate.cli.files.matches import CollectedMatches, OrderedMatches, matches_file
from tidegate.errors import TidegateError
from tidegate.matching.batches import Matches


def matches(*found: tuple[int, str], coded: bool = False) -> Matches:
    ids = pa.array([id for _, id in found], pa.string())
    events = np.array([event for event, _ in found], np.int64)
    return Matches(events, ids.dictionary_encode() if coded else ids)


FOUND = [(7, "b"), (2, "ü"), (2, "Z"), (2, "a"), (7, "\U0001f600"), (7, "\uffff"), (2**40, "a")]


def write(path: Path, *parts: Matches) -> None:
    with matches_file(str(path)) as writer:
        for part in parts:
            writer.write(OrderedMatches.of(part))


@pytest.mark.parametrize("coded", [True, False])
def test_order(tmp_path: Path, coded: bool) -> None:
    write(tmp_path / "m", matches(*FOUND, coded=coded))
    assert pairs((tmp_path / "m").read_text(encoding="utf-8")) == sorted(FOUND)


def test_a_code_that_is_not_used_does_no_harm(tmp_path: Path) -> None:
    ids = pa.DictionaryArray.from_arrays(np.array([3, 0]), pa.array(["b", "x", None, "a"]))
    write(tmp_path / "m", Matches(np.array([1, 1]), ids))
    assert pairs((tmp_path / "m").read_text(encoding="utf-8")) == [(1, "a"), (1, "b")]


def test_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_MATCHES", 3)
    rng = np.random.default_rng(1)
    found = [(int(event), f"s{event % 7}") for event in rng.integers(0, 1000, 50)]
    for name in ("m.jsonl", "m.parquet"):
        write(tmp_path / name, matches(*found), matches((1000, "a")), matches(*[(1001, "a")] * 4))
    expected = [*sorted(found), (1000, "a"), *[(1001, "a")] * 4]
    assert pairs((tmp_path / "m.jsonl").read_text(encoding="utf-8")) == expected
    rows = pq.read_table(tmp_path / "m.parquet").to_pylist()
    assert [(row["event"], row["subscription"]) for row in rows] == expected


def test_collected_matches() -> None:
    collected = CollectedMatches()
    for batch in (matches(*FOUND[:3]), matches(*FOUND[3:], coded=True), matches()):
        collected.add(batch)
    ordered = OrderedMatches.of(collected.all())
    ids = ordered.ids.to_pylist()
    numbered = zip(ordered.events, ordered.id_numbers, strict=True)
    found = [(event, ids[number]) for event, number in numbered]
    assert found == sorted(FOUND)
    assert len(OrderedMatches.of(CollectedMatches().all()).events) == 0


# -- atomic output -----------------------------------------------------------------------------


def write_and_stop(path: Path) -> None:
    with matches_file(str(path)) as writer:
        writer.write(OrderedMatches.of(matches(*FOUND)))
        raise TidegateError("stop")


@pytest.mark.parametrize("name", ["m.jsonl", "m.parquet"])
def test_on_an_error_nothing_is_left(tmp_path: Path, name: str) -> None:
    with pytest.raises(TidegateError, match="stop"):
        write_and_stop(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_file_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "m"
    target.write_text("old", encoding="utf-8")
    with matches_file(str(target)) as writer:
        writer.write(OrderedMatches.of(matches(*FOUND)))
        assert target.read_text(encoding="utf-8") == "old"
    assert pairs(target.read_text(encoding="utf-8")) == sorted(FOUND)
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write(tmp_path / "m")
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "m").chmod(0o640)
    write(tmp_path / "m")
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write(tmp_path / "link", matches(*FOUND))
    assert (tmp_path / "link").is_symlink()
    assert pairs((tmp_path / "target").read_text(encoding="utf-8")) == sorted(FOUND)


def test_a_device_is_not_replaced() -> None:
    write(Path(os.devnull), matches(*FOUND))
    assert Path(os.devnull).is_char_device()


def test_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write(pipe, matches(*FOUND))
    reader.join()
    assert pairs(read[0]) == sorted(FOUND)
    assert pipe.is_fifo()


# -- the name of the output file --------------------------------------------------------------


def test_a_file_that_is_read_is_not_overwritten(folder: Folder) -> None:
    folder.write("wanted.jsonl", [{"id": "a", "filter": "x = 1"}])
    folder.write("events.jsonl", [{"x": 1}])
    (folder.path / "link.jsonl").symlink_to("events.jsonl")
    files = ("--subscriptions", "wanted.jsonl", "--events", "events.jsonl")
    for output in ("events.jsonl", "wanted.jsonl", "./events.jsonl", "link.jsonl"):
        before = folder.read(output)
        ran = folder.run("match", *files, "--output", output)
        assert (ran.code, folder.read(output)) == (2, before)
        assert ran.err == (
            f"error: --output: {output} is read by this command; name another file\n"
        )


@pytest.mark.parametrize(("name", "delimiter"), [("out.csv", ","), ("OUT.TSV", "\t")])
def test_matches_as_csv(folder: Folder, name: str, delimiter: str) -> None:
    ids = ["plain", 'a "quoted", id', "Zürich"]
    folder.write("wanted.jsonl", [{"id": id, "filter": "x = 1"} for id in ids])
    folder.write("events.jsonl", [{"x": 1}, {"x": 2}, {"x": 1}])
    files = ("--subscriptions", "wanted.jsonl", "--events", "events.jsonl")
    assert folder.run("match", *files, "--output", name).code == 0
    rows = list(csv.reader(folder.read(name).splitlines(), delimiter=delimiter))
    assert rows[0] == ["event", "subscription"]
    assert rows[1:] == [[event, id] for event in "02" for id in sorted(ids)]


def test_no_matches_as_csv_are_a_line_of_names(folder: Folder) -> None:
    folder.write("wanted.jsonl", [{"id": "a", "filter": "x = 1"}])
    folder.write("events.jsonl", [{"x": 2}])
    files = ("--subscriptions", "wanted.jsonl", "--events", "events.jsonl")
    assert folder.run("match", *files, "--output", "out.csv").code == 0
    assert next(csv.reader([folder.read("out.csv").strip()])) == ["event", "subscription"]


def test_a_format_that_is_not_written(folder: Folder) -> None:
    folder.write("wanted.jsonl", [])
    files = ("--subscriptions", "wanted.jsonl", "--events", "wanted.jsonl")
    ran = folder.run("match", *files, "--output", "out.xlsx")
    assert (ran.code, folder.files()) == (2, ["wanted.jsonl"])
    assert ran.err == (
        "error: --output: out.xlsx: matches are not written as xlsx; "
        "use .jsonl, .csv, .tsv or .parquet\n"
    )
