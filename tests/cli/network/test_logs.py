"""Log lines as JSON are one object each, with the fields that a program looks for."""

from __future__ import annotations

import json
import logging
import sys

from tidegate.cli.network.logs import JsonFormatter, TextFormatter, set_up_logs


def test_record_as_json() -> None:
    try:
        raise ValueError("bad\nline")
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("tidegate.x", logging.ERROR, "f", 1, "a %s", ("b",), error)
    record.created, record.peer = 0.5, "b"
    line = JsonFormatter("a").format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert found.pop("exception").endswith("ValueError: bad\nline")
    assert found == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "error",
        "broker": "a",
        "logger": "tidegate.x",
        "message": "a b",
        "peer": "b",
    }


def test_record_as_text() -> None:
    record = logging.LogRecord("tidegate.x", logging.INFO, "f", 1, "%s came", ("a\nfake",), None)
    record.created = 0.5
    assert TextFormatter().format(record) == r"1970-01-01T00:00:00Z INFO    a\nfake came"


def test_levels_and_formats() -> None:
    logger = logging.getLogger("tidegate")
    before = (logger.handlers[:], logger.level, logger.propagate)
    try:
        set_up_logs("json", "warning", "a")
        assert logger.level == logging.WARNING
        assert isinstance(logger.handlers[0].formatter, JsonFormatter)
        set_up_logs("text", "debug")
        assert isinstance(logger.handlers[0].formatter, TextFormatter)
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
