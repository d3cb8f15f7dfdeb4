from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.broker_process import BrokerProcess, broker_process
from support.command_line import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def broker_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker for the commands of clients; they do not get in each other's way."""
    with broker_process(tmp_path_factory.mktemp("broker") / "data") as running:
        yield running
