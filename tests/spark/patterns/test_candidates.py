"""Candidates as JSON, their order, and timestamps as microseconds."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import types as t

from tidegate.spark.patterns.candidates import (
    Candidate,
    candidate_json,
    events_as_json,
    join_candidates,
    microseconds_type,
    read_candidates,
    sorted_candidates,
    write_candidates,
)

AT = datetime(2026, 1, 1, 0, 0, 0, 7, tzinfo=UTC)
TIME_US = 1767225600000007


def test_times_are_microseconds_in_structs_too() -> None:
    events = pa.RecordBatch.from_pylist(
        [
            {"at": AT, "x": 1, "inner": {"at": AT, "deep": {"at": None}}},
            {"at": None, "x": None, "inner": None},
        ]
    )
    first, second = (json.loads(each) for each in events_as_json(events))
    assert first == {"at": TIME_US, "x": 1, "inner": {"at": TIME_US, "deep": {"at": None}}}
    assert second == {"at": None, "x": None, "inner": None}
    # of a slice, and of other units
    coarse = events.select(["at"]).slice(0, 1).cast(pa.schema([("at", pa.timestamp("ns", "UTC"))]))
    assert events_as_json(events.slice(1)) == ['{"at":null,"x":null,"inner":null}']
    assert events_as_json(coarse) == [f'{{"at":{TIME_US}}}']


def test_candidates_come_back_as_they_were() -> None:
    values = {
        "whole": 2**63 - 1,
        "part": 0.1,
        "wide": float("inf"),
        "text": 'é"\n\x00',
        "none": None,
    }
    made = Candidate(-5, 1 << 31, values)
    assert read_candidates(write_candidates([made])) == [made]
    assert (
        read_candidates(join_candidates([candidate_json(-5, 1 << 31, json.dumps(values))] * 2))
        == [made] * 2
    )


def test_the_order_of_events_of_one_time() -> None:
    nan = float("nan")
    ordered = [
        Candidate(1, 1, {"a": 9.0, "b": None}),
        Candidate(2, 1, {"a": None, "b": {"c": 1}}),
        Candidate(2, 1, {"a": -1.0, "b": None}),
        Candidate(2, 1, {"a": -1.0, "b": {"c": None}}),
        Candidate(2, 1, {"a": -1.0, "b": {"c": "a"}}),
        Candidate(2, 2, {"a": -1.0, "b": {"c": "a"}}),
        Candidate(2, 1, {"a": float("inf"), "b": None}),
        Candidate(2, 1, {"a": nan, "b": None}),
        Candidate(2, 1, {"a": nan, "b": {"c": ""}}),
    ]
    assert sorted_candidates(reversed(ordered)) == ordered


def test_stored_types() -> None:
    kind = t.StructType(
        [
            t.StructField("at", t.TimestampNTZType()),
            t.StructField("inner", t.StructType([t.StructField("at", t.TimestampType())])),
            t.StructField("x", t.FloatType()),
        ]
    )
    assert (
        microseconds_type(kind).simpleString()
        == "struct<at:bigint,inner:struct<at:bigint>,x:float>"
    )
