"""JSON records: the good ones are read, and each bad one has a reason."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from tidegate.errors import EventError
from tidegate.spark.sources.event_schemas import BAD, RECORD, SOURCE, arrow_schema
from tidegate.spark.sources.json_records import VALUE, JsonReader, find_fault, parse_records

SCHEMA = (
    t.StructType()
    .add("symbol", "string")
    .add("price", "double")
    .add("volume", "long")
    .add("lot", "byte")
    .add("open", "boolean")
    .add("time", "timestamp")
    .add("quote", t.StructType().add("bid", "double").add("venue", "string"))
)

FAULTS: list[tuple[bytes | None, str]] = [
    (b'{"price": "9.5"}', "column 'price' is a string, the schema says double"),
    (b'{"price": true}', "column 'price' is a boolean, the schema says double"),
    (b'{"price": {}}', "column 'price' is an object, the schema says double"),
    (b'{"price": [1]}', "column 'price' is a list, and a list is not a value"),
    (b'{"symbol": 5}', "column 'symbol' is an integer, the schema says string"),
    (b'{"symbol": ["IBM"]}', "column 'symbol' is a list, and a list is not a value"),
    (b'{"volume": 1.5}', "column 'volume' is a number with a fraction, the schema says bigint"),
    (b'{"volume": "3"}', "column 'volume' is a string, the schema says bigint"),
    (b'{"open": 1}', "column 'open' is an integer, the schema says boolean"),
    (b'{"time": 12}', "column 'time' is an integer, the schema says timestamp"),
    (b'{"quote": 5}', "column 'quote' is an integer, the schema says struct<bid:double,venue:str"),
    (b'{"quote": {"bid": "x"}}', "column 'quote.bid' is a string, the schema says double"),
    (b'{"quote": {"venue": 5}}', "column 'quote.venue' is an integer, the schema says string"),
]
MALFORMED: list[tuple[bytes | None, str]] = [
    (None, "the record has no value"),
    (b"", "not JSON: Expecting value at character 0"),
    (b"null", "null, not an object"),
    (b"5", "an integer, not an object"),
    (b'[{"price": 1}]', "a list, not an object"),
    (b'{"price": 1', "not JSON: Expecting ',' delimiter at character 11"),
    (b'{"price": 1} x', "not JSON: Extra data at character 13"),
    (b'{"price": 1}{"price": 2}', "not JSON: Extra data at character 12"),
    (b'{"price": 1} null {"price": 2}', "not JSON: Extra data at character 13"),
    (b'{"price": 1, "price": 2}', "column 'price' is in the record twice"),
    (b'{"symbol": "\xff"}', "not UTF-8 at byte 12"),
    (b'{"symbol": "\\ud800"}', "cannot be read: JSON parse error: The surrogate pair"),
    (b'{"symbol": ' * 9000 + b"1" + b"}" * 9000, "the record nests too deeply"),
    (b'{"volume": 99999999999999999999}', "column 'volume' is '99999999999999999999', too large"),
    (b'{"volume": %s}' % (b"9" * 5000), "not JSON: Exceeds the limit"),
    (b'{"lot": 128}', "column 'lot' is '128', too large for tinyint"),
    (b'{"time": "noon"}', "column 'time' is 'noon', not a time such as 2026-01-02T03:04:05Z"),
    (b'{"time": "12:30"}', "column 'time' is '12:30', not a time"),
]
GOOD = [
    (b"{}", {}),
    (b' {"price": 1}\r', {"price": 1.0}),
    (b'{"price": null, "quote": null}', {}),
    (b'{\n"price":\n2.5}', {"price": 2.5}),
    (b'{"other": [1, {"price": "x"}], "price": 2}', {"price": 2.0}),
    (b'{"Price": "x"}', {}),
    (b'{"quote": {"bid": 1, "other": []}}', {"quote": {"bid": 1.0, "venue": None}}),
    (b'{"lot": -128, "volume": -9223372036854775808}', {"lot": -128, "volume": -(2**63)}),
    ('{"symbol": "Zürich}{"}'.encode(), {"symbol": "Zürich}{"}),
]


def read(records: list[bytes | None], *, drift_is_error: bool = False) -> list[dict[str, object]]:
    """The rows that the reader makes of one batch, without absent attributes."""
    sources = [f"place {row}" for row in range(len(records))]
    arrays: list[pa.Array[Any]] = [
        pa.array(records, pa.binary()),
        pa.array(sources),
        pa.array(range(len(records))),
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=[VALUE, SOURCE, "row"])
    rows: list[dict[str, object]] = []
    for result in JsonReader(SCHEMA, drift_is_error)(iter([batch])):
        assert result.schema.names == [*SCHEMA.names, "row", BAD, RECORD, SOURCE]
        rows += result.to_pylist()
    assert [row.pop("row") for row in rows] == list(range(len(records)))
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


@pytest.mark.parametrize(("record", "reason"), FAULTS + MALFORMED)
def test_a_bad_record_says_why(record: bytes | None, reason: str) -> None:
    (row,) = read([record])
    assert str(row.pop(BAD)).startswith(reason)
    shown = {} if record is None else {RECORD: record.decode(errors="replace")}
    assert row == {SOURCE: "place 0", **shown}


@pytest.mark.parametrize(("record", "attributes"), GOOD)
def test_a_good_record_becomes_columns(record: bytes, attributes: dict[str, object]) -> None:
    assert read([record]) == [attributes]
    assert find_fault(record, SCHEMA) is None


@pytest.mark.parametrize(
    "text", ["2026-01-02T03:04:05.5Z", "2026-01-02 03:04:05.5", "2026-01-02T04:04:05.5+01:00"]
)
def test_a_time_is_in_utc_unless_it_says_otherwise(text: str) -> None:
    (row,) = read([json.dumps({"time": text}).encode()])
    assert str(row["time"]) == "2026-01-02 03:04:05.500000+00:00"


def test_good_and_bad_records_of_a_batch_keep_their_places() -> None:
    every = [record for record, _ in FAULTS + MALFORMED + GOOD]
    mixed = [record for index in range(40) for record in every[index % 7 :: 7]]
    assert read(mixed) == [
        {name: place if name == SOURCE else value for name, value in row.items()}
        for index, record in enumerate(mixed)
        for place in [f"place {index}"]
        for row in read([record])
    ]


def test_an_empty_batch() -> None:
    assert read([]) == []


@pytest.mark.parametrize(("record", "reason"), FAULTS)
def test_drift_can_be_an_error_that_names_column_and_place(record: bytes, reason: str) -> None:
    with pytest.raises(EventError) as caught:
        read([b"{}", record], drift_is_error=True)
    assert str(caught.value).startswith(f"place 1: {reason}")


@pytest.mark.parametrize(("record", "reason"), MALFORMED)
def test_malformed_records_are_no_drift(record: bytes | None, reason: str) -> None:
    (row,) = read([record], drift_is_error=True)
    assert str(row[BAD]).startswith(reason)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA.names, "other"]), _values))
def test_what_arrow_refuses_and_what_python_refuses_is_the_same(record: dict[str, object]) -> None:
    text = json.dumps(record, ensure_ascii=False).encode(errors="surrogatepass")
    refused = parse_records(pa.array([text]), arrow_schema(SCHEMA)) is None
    if find_fault(text, SCHEMA) is not None:
        assert refused
    elif refused:  # what only Arrow minds has a reason all the same
        assert str(read([text])[0][BAD]).startswith("cannot be read: ")
