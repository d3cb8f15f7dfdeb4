"""A store that several test files damage, each its own copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.stores import fill


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a closed store with events in two queues."""
    folder = tmp_path_factory.mktemp("sound")
    fill(folder).close()
    return folder
