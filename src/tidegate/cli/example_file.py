"""The commented files of settings that `init` commands write."""

from __future__ import annotations

from pathlib import Path

from tidegate.errors import TidegateError


def write_example(example: Path, file: Path) -> None:
    """Write an example to a new file; raises TidegateError."""
    try:
        # "x": a file that a user has edited must not be overwritten.
        with file.open("x", encoding="utf-8") as out:
            out.write(example.read_text(encoding="utf-8"))
    except FileExistsError:
        raise TidegateError(f"{file}: exists already; name another file") from None
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror or error}") from None
