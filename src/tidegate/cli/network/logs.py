"""Log lines of a broker on stderr, for people or as JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonFormatter(logging.Formatter):
    """One JSON object for each record: time, level, broker, logger, message, and the fields of
    `extra`, of which `event` says what has happened."""

    def __init__(self, broker: str | None = None) -> None:
        super().__init__()
        self._broker = broker

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "time": moment,
            "level": record.levelname.lower(),
            **({} if self._broker is None else {"broker": self._broker}),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _KNOWN}
        if record.exc_info is not None:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """One line for each record, for people; control characters in it are made visible."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        # What a stranger calls itself must not begin a line of its own.
        head, *rest = line.split("\n")
        is_traceback = record.exc_info is not None
        return "\n".join([head, *rest]) if is_traceback else "\\n".join([head, *rest])


def set_up_logs(log_format: str, level: str, broker: str | None = None) -> None:
    """Write the log of Tidegate to stderr, as "text" or "json"."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(broker) if log_format == "json" else TextFormatter())
    logger = logging.getLogger("tidegate")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
