"""Folders behind URIs: what cannot be reached is said."""

from __future__ import annotations

import pytest

from tidegate import ConnectorError
from tidegate.spark.storage.locations import folder_at
from tidegate.spark.storage.remote_folder import RemoteFolder


def test_a_server_that_does_not_answer_is_an_error_of_the_system() -> None:
    nowhere = {
        "fs.s3a.endpoint": "http://127.0.0.1:1",
        "fs.s3a.access.key": "k",
        "fs.s3a.secret.key": "s",
    }
    with pytest.raises(OSError, match="tidegate"):
        folder_at("s3a://tidegate/a", nowhere).read("b")


def test_a_file_system_without_its_library_is_named() -> None:
    folder = folder_at("hdfs://nowhere:9000/a", {})
    with pytest.raises(ConnectorError, match=r"hdfs://nowhere:9000 cannot be reached: "):
        folder.names()


def test_only_an_object_store_does_without_renames() -> None:
    assert folder_at("hdfs://host/a", {}).has_rename
    for location in ("s3://b/a", "gs://b/a", "abfss://c@account.dfs.core.windows.net/a"):
        assert not folder_at(location, {}).has_rename


def test_subfolders_keep_what_leads_to_them() -> None:
    folder = folder_at("abfss://c@account.dfs.core.windows.net/a", {})
    assert isinstance(folder, RemoteFolder)
    below = folder.folder("b")
    assert below.location == "abfss://c@account.dfs.core.windows.net/a/b"
    assert (below.arrow_root + below.path, below.options) == ("c/a/b", folder.options)
