"""Values of the options that Spark passes to a data source as strings."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.errors import ConnectorError, LogError

INTEGER_MAX = 2**63 - 1

OptionError = type[ConnectorError] | type[LogError]


def integer_option(
    options: Mapping[str, str], name: str, least: int, error: OptionError = ConnectorError
) -> int | None:
    """An integer option; None if it is not set.

    >>> integer_option({"batch": "7"}, "batch", least=0)
    7
    """
    text = options.get(name)
    if text is None:
        return None
    if is_integer(text) and int(text) >= least:
        return int(text)
    raise error(f"option {name!r} is {text!r:.120}; take an integer, from {least} on")


def is_integer(text: str) -> bool:
    """Whether a text is an integer from 0 to 2**63 - 1; a long one is not converted at all."""
    return text.isascii() and text.isdigit() and int(text[:20]) <= INTEGER_MAX and len(text) < 20


def mismatch_to_null(options: Mapping[str, str], error: OptionError = ConnectorError) -> bool:
    """The option ``onMismatch``: whether a value that its column cannot hold is read as null."""
    text = options.get("onMismatch", "error").lower()
    if text not in ("error", "null"):
        raise error(f"option 'onMismatch' is {text!r:.120}; take 'error' or 'null'")
    return text == "null"
