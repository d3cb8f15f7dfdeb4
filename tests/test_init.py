"""The public face of the package: its names, and what an import of it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tidegate
from tidegate import errors


def test_all_names_can_be_imported() -> None:
    assert [name for name in tidegate.__all__ if getattr(tidegate, name, None) is None] == []
    assert len(set(tidegate.__all__)) == len(tidegate.__all__)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'tidegate' has no attribute 'Boat'"):
        _ = tidegate.Boat


def test_errors_that_users_catch_are_public() -> None:
    assert tidegate.TidegateError is errors.TidegateError
    public = [name for name in tidegate.__all__ if name.endswith("Error")]
    assert all(issubclass(getattr(tidegate, name), tidegate.TidegateError) for name in public)


def test_an_import_loads_no_slow_module() -> None:
    code = (
        "import sys, tidegate; tidegate.parse('x = 1'); "
        "print({'numba', 'pyarrow', 'pyspark'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout == b"set()\n"


def test_a_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['msgspec'] = None; import tidegate\n"
        "try: tidegate.connect\n"
        "except tidegate.NetworkError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert ran.stdout == (
        "tidegate.connect needs the extra `network`: pip install 'tidegate[network]'\n"
    )
