from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.cli.example_file import write_example
from tidegate.errors import TidegateError


def test_an_example_is_written_to_a_new_file_only(tmp_path: Path) -> None:
    example, file = tmp_path / "example", tmp_path / "file"
    example.write_text("x = 1\n", encoding="utf-8")
    write_example(example, file)
    assert file.read_text(encoding="utf-8") == "x = 1\n"
    with pytest.raises(TidegateError, match="exists already; name another file"):
        write_example(example, file)
    with pytest.raises(TidegateError, match="No such file or directory"):
        write_example(example, tmp_path / "none" / "file")
