"""Local folders and S3 buckets do the same; each test is run on both."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from support.s3_server import BUCKET
from tidegate import ConnectorError, StateError
from tidegate.spark.storage.folder import Folder, as_connector_error, as_state_error
from tidegate.spark.storage.locations import folder_at


@pytest.fixture(params=["local", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """A folder that does not exist yet."""
    if request.param == "local":
        return folder_at(tmp_path / "a folder", {})
    server = request.getfixturevalue("s3")
    return folder_at(f"s3a://{BUCKET}/{tmp_path.name}", server.credentials)


def test_files_and_folders(folder: Folder) -> None:
    assert folder.names() == []
    assert not folder.exists("a")
    folder.write("a", b"one")
    folder.write("a", b"two")
    folder.write("deep/er/b.json", b"")
    assert folder.names() == ["a", "deep"]
    assert folder.folder("deep").names() == ["er"]
    assert (folder.read("a"), folder.folder("deep").read("er/b.json")) == (b"two", b"")
    assert folder.exists("deep/er/b.json")
    assert folder.exists("deep")
    assert not folder.exists("dee")


def test_what_is_removed_is_gone(folder: Folder) -> None:
    for name in ("a", "few/a", "few/b", "few/deep/c", "fewer/a"):
        folder.write(name, b"x")
    folder.remove("few")
    folder.remove("a")
    folder.remove("a")  # there may be nothing to remove
    folder.remove("none/at/all")
    assert folder.names() == ["fewer"]
    folder.write("spool/1/a", b"x")
    folder.folder("spool").remove("1")
    assert folder.folder("spool").names() == []


def test_files_are_copied_from_and_to_this_machine(folder: Folder, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    content = bytes(range(256)) * 40_000  # larger than a part of a copy
    here.write_bytes(content)
    folder.upload(here, "deep/copy")
    folder.download("deep/copy", there)
    assert there.read_bytes() == content
    assert folder.folder("deep").names() == ["copy"]


def test_an_arrow_file_is_read_in_parts(folder: Folder) -> None:
    rows = pa.record_batch({"x": [1, 2]})
    with folder.open_output("deep/a.arrow") as sink, pa.ipc.new_file(sink, rows.schema) as file:
        for _ in range(3):
            file.write_batch(rows)
    with folder.open_input("deep/a.arrow") as source:
        found = pa.ipc.open_file(source).get_batch(2)
    assert found.to_pydict() == {"x": [1, 2]}  # though the file is closed


def test_a_folder_is_the_same_in_a_worker_and_hides_its_secrets(folder: Folder) -> None:
    folder.write("a", b"x")
    again: Folder = pickle.loads(pickle.dumps(folder))
    assert again == folder
    assert again.read("a") == b"x"
    assert "secret" not in repr(folder)


def test_what_fails_names_the_file(folder: Folder) -> None:
    with pytest.raises(StateError, match=r"deep/a\.json: ."), as_state_error(folder, "deep/a.json"):
        folder.read("deep/a.json")
    with pytest.raises(ConnectorError, match=folder.location), as_connector_error(folder):
        folder.open_input("a")
    with pytest.raises(OSError, match=r"."):
        folder.download("a", Path("unused"))
    assert not Path("unused").exists()
