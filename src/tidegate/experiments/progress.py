"""How those who measure say what they are at."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], object]
"""Is told, now and then, what is being done."""
