from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import strings
from tidegate.errors import SnapshotError
from tidegate.matching.rows.store.snapshot_file import FORMAT, TRAILER, SectionReader, SectionWriter

TYPES = [
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64",
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshot"


def write(path: Path, **arrays: npt.NDArray[Any]) -> None:
    into = SectionWriter()
    for name, values in arrays.items():
        into.array(name, values)
    into.note("about", "tests")
    into.write(path)


# -- there and back -------------------------------------------------------------------------------


def edges_of(dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        info = np.finfo(kind)
        return np.array([0.0, -0.0, math.nan, math.inf, -math.inf, info.max, info.tiny], kind)
    limits = np.iinfo(kind)
    return np.array([limits.min, 0, 1, limits.max], kind)


@pytest.mark.parametrize("dtype", TYPES)
def test_an_array_of_each_type(path: Path, dtype: str) -> None:
    values = edges_of(dtype)
    write(path, values=values, nothing=values[:0])
    source = SectionReader(path)
    found = source.array("values")
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()  # to the last bit, signs of zero and NaN too
    assert source.array("nothing").dtype == values.dtype
    assert len(source.array("nothing")) == 0


def test_many_arrays_of_odd_lengths(path: Path) -> None:
    """Each is aligned for its type, whatever comes before it."""
    arrays = {f"{kind}.{n}": np.arange(n).astype(kind) for n in range(9) for kind in TYPES}
    write(path, **arrays)
    source = SectionReader(path)
    for name, values in arrays.items():
        found = source.array(name)
        assert found.tolist() == values.tolist()
        assert found.flags.aligned


def test_an_array_that_is_not_contiguous(path: Path) -> None:
    grid = np.arange(12).reshape(3, 4)
    write(path, grid=grid, turned=grid.T, some=np.arange(10)[::3])
    source = SectionReader(path)
    assert source.array("grid").tolist() == list(range(12))
    assert source.array("turned").tolist() == grid.T.ravel().tolist()
    assert source.array("some").tolist() == [0, 3, 6, 9]


@given(st.lists(strings))
def test_texts(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "texts"
    into = SectionWriter()
    into.texts("texts", texts)
    into.write(path)
    assert SectionReader(path).texts("texts").to_pylist() == texts


@pytest.mark.parametrize(
    "note",
    [None, True, 7, 2**63, -1.5, math.inf, "é\0\U0010ffff", [], {}, {"a": [1, None, {"b": "c"}]}],
)
def test_a_note(path: Path, note: object) -> None:
    into = SectionWriter()
    into.note("note", note)
    into.note("other", 1)
    into.write(path)
    assert SectionReader(path).note("note") == note


def test_a_file_with_nothing_in_it(path: Path) -> None:
    SectionWriter().write(path)
    SectionReader(path)


def test_names_of_any_kind(path: Path) -> None:
    names = ["", "part0.i32", "é", "a b", "'"]
    into = SectionWriter()
    for number, name in enumerate(names):
        into.array(name, np.array([number]))
    into.write(path)
    source = SectionReader(path)
    assert [source.array(name).item() for name in names] == list(range(len(names)))


# -- a private mapping ----------------------------------------------------------------------------


def test_arrays_can_be_written_to_and_the_file_stays(path: Path) -> None:
    write(path, values=np.arange(5))
    before = path.read_bytes()
    first, second = SectionReader(path), SectionReader(path)
    first.array("values")[:] = -1
    assert first.array("values").tolist() == [-1] * 5
    assert second.array("values").tolist() == list(range(5))
    assert path.read_bytes() == before


def test_arrays_outlive_their_reader_and_the_file(path: Path) -> None:
    write(path, values=np.arange(5))
    values = SectionReader(path).array("values")
    path.unlink()
    assert values.tolist() == list(range(5))


# -- writing --------------------------------------------------------------------------------------


def test_a_file_is_written_under_another_name_first(path: Path) -> None:
    write(path, values=np.arange(5))
    before = path.read_bytes()
    seen: list[bytes] = []

    def replace(source: Path, target: Path) -> Path:
        assert source != target
        seen.append(path.read_bytes())
        seen.append(source.read_bytes())
        return source.rename(target)

    with mock.patch.object(Path, "replace", replace):
        write(path, values=np.arange(6))
    assert seen == [before, path.read_bytes()]
    assert SectionReader(path).array("values").tolist() == list(range(6))
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_reader_keeps_what_it_opened_when_the_file_is_replaced(path: Path) -> None:
    write(path, values=np.arange(5))
    source = SectionReader(path)
    write(path, values=np.zeros(5))
    assert source.array("values").tolist() == list(range(5))


def test_what_cannot_be_written_leaves_the_old_file(path: Path) -> None:
    write(path, values=np.arange(5))
    with (
        mock.patch.object(pa.ipc, "new_file", side_effect=OSError("the disk is full")),
        pytest.raises(SnapshotError, match="the disk is full"),
    ):
        write(path, values=np.arange(6))
    assert SectionReader(path).array("values").tolist() == list(range(5))


# -- files that are no snapshots ------------------------------------------------------------------


def refusal(path: Path) -> str:
    with pytest.raises(SnapshotError) as caught:
        SectionReader(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def arrow_file(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def test_a_missing_file(path: Path) -> None:
    assert refusal(path) == "No such file or directory"


def test_a_folder(path: Path) -> None:
    path.mkdir()
    assert refusal(path) == "Is a directory"


@pytest.mark.parametrize("content", [b"", b"hello", b"ARROW1\0\0", b"\0" * 5000])
def test_a_file_of_something_else(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert refusal(path) == "is no snapshot, or a damaged one"


def test_a_file_that_ends_too_early(path: Path) -> None:
    write(path, values=np.arange(3), more=np.arange(2.0))
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        assert refusal(path) == "is no snapshot, or a damaged one"


def test_a_file_that_lacks_its_beginning(path: Path) -> None:
    write(path, values=np.arange(3))
    path.write_bytes(path.read_bytes()[100:])
    refusal(path)


def test_another_arrow_file(path: Path) -> None:
    arrow_file(path, pa.table({"a": [1]}))
    assert refusal(path) == "is no snapshot of this version of Tidegate"


def test_a_snapshot_of_another_version(path: Path) -> None:
    write(path, values=np.arange(3))
    newer = b"tidegate snapshot 999".ljust(len(FORMAT))
    path.write_bytes(path.read_bytes().replace(FORMAT, newer))
    assert refusal(path) == "is no snapshot of this version of Tidegate"


def test_an_arrow_file_of_something_else_with_a_trailer(path: Path) -> None:
    """Whole and undamaged, but without rows or notes."""
    for table in (pa.table({"a": [1]}), pa.schema([("a", pa.int64())]).empty_table()):
        arrow_file(path, table)
        content = path.read_bytes()
        path.write_bytes(content + TRAILER.pack(len(content), zlib.crc32(content), FORMAT))
        assert refusal(path) == "is no snapshot, or a damaged one"


def test_a_flipped_bit_in_any_byte_is_noticed(path: Path) -> None:
    write(path, values=np.arange(3), more=np.arange(2.0))
    content = bytearray(path.read_bytes())
    for place in range(len(content)):
        content[place] ^= 1 << place % 8
        path.write_bytes(content)
        refusal(path)
        content[place] ^= 1 << place % 8


@pytest.mark.parametrize("kind", ["array", "texts", "note"])
def test_a_section_that_is_not_there(path: Path, kind: str) -> None:
    write(path, values=np.arange(3))
    with pytest.raises(SnapshotError, match=f"{path}: "):
        getattr(SectionReader(path), kind)("nothing")
