"""Values of options."""

from __future__ import annotations

import pytest

from tidegate.errors import ConnectorError, LogError
from tidegate.spark.option_values import integer_option, is_integer, mismatch_to_null


def test_integers() -> None:
    assert integer_option({}, "n", least=0) is None
    assert integer_option({"n": "0"}, "n", least=0) == 0
    assert integer_option({"n": str(2**63 - 1)}, "n", least=0) == 2**63 - 1
    for text in ("0", "-1", "1.0", "", "x", "٣", str(2**63), "9" * 10_000):
        with pytest.raises(ConnectorError, match=r"option 'n' is .*; take an integer, from 1 on"):
            integer_option({"n": text}, "n", least=1)
    assert not is_integer("9" * 10_000)


def test_mismatches() -> None:
    assert mismatch_to_null({"onMismatch": "NULL"})
    assert not mismatch_to_null({})
    with pytest.raises(LogError, match="option 'onMismatch' is 'ignore'"):
        mismatch_to_null({"onMismatch": "ignore"}, LogError)
