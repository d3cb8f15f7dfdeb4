"""Log lines as JSON are one object each, with the fields that a program looks for."""

from __future__ import annotations

import json
import logging
import sys

from tidegate.cli.network.logs import JsonFormatter


def test_record_as_json() -> None:
    try:
        raise ValueError("bad\nline")
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("tidegate.x", logging.ERROR, "f", 1, "a %s", ("b",), error)
    record.created, record.peer = 0.5, "b"
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert found.pop("exception").endswith("ValueError: bad\nline")
    assert found == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "error",
        "logger": "tidegate.x",
        "message": "a b",
        "peer": "b",
    }
