"""Error messages as a user sees them, from `language/errors/*.txt`: reason, text, carets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).parents[1] / "language" / "errors"


def messages(name: str) -> list[Any]:
    """Parameters (text, message) for every message of a file, named for their text."""
    blocks = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    texts = [block.split("\n")[1][2:] for block in blocks]
    assert len(set(texts)) == len(texts)
    return [pytest.param(*pair, id=pair[0]) for pair in zip(texts, blocks, strict=True)]
