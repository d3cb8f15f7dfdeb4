"""A state is taken up only by the query that it belongs to, with the same columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tidegate import StateError
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.streaming.state_files import write_json
from tidegate.spark.streaming.state_identity import IDENTITY_FILE, StreamIdentity, token_of

IDENTITY = StreamIdentity("q", "time", "struct<a:double,time:timestamp>", "a, time", grouped=False)


def test_the_token_stays(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "state")
    token = token_of(folder, IDENTITY, first=True)
    assert token_of(folder, IDENTITY, first=True) == token
    assert token_of(folder, IDENTITY, first=False) == token
    assert token_of(LocalFolder(tmp_path / "other"), IDENTITY, first=True) != token


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (replace(IDENTITY, query="r"), r"belongs to the query q, and this is r: Spark's own files"),
        (
            replace(IDENTITY, event_time="at"),
            r"time of events is column at, and that was time when",
        ),
        (
            replace(IDENTITY, columns="struct<a:string>"),
            r"columns struct<a:string>, and that was s",
        ),
        (
            replace(IDENTITY, kept="a"),
            r"deliveries have the columns a of events, and that was a, t",
        ),
        (replace(IDENTITY, grouped=True), r"grouped is True, and that was False"),
    ],
)
def test_what_changed_is_named_with_what_to_do(
    tmp_path: Path, changed: StreamIdentity, reason: str
) -> None:
    folder = LocalFolder(tmp_path)
    token_of(folder, IDENTITY, first=True)
    with pytest.raises(StateError, match=f"{reason}.*, or begin with another checkpoint"):
        token_of(folder, changed, first=False)


def test_a_state_that_was_lost(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"has no state of the stream.*restore it, or begin"):
        token_of(LocalFolder(tmp_path), IDENTITY, first=False)
    assert not list(tmp_path.iterdir())


def test_another_format(tmp_path: Path) -> None:
    for content, format in (("token", 1), ({"format": 99}, 99), ({}, None)):
        write_json(LocalFolder(tmp_path), IDENTITY_FILE, content)
        with pytest.raises(StateError, match=f"is of format {format}, and this Tidegate reads"):
            token_of(LocalFolder(tmp_path), IDENTITY, first=True)
