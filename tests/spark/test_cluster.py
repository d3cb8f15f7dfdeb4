"""The same answers on a standalone cluster, whatever of it is killed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support import cluster_program
from support.replayed_engine import embedded, without_versions
from support.s3_server import BUCKET
from support.spark_cluster import Cluster, running_cluster
from support.spark_streams import net
from tidegate.spark.storage.locations import folder_at

pytestmark = pytest.mark.xdist_group("cluster")


@dataclass(frozen=True)
class Place:
    """Where a stream keeps its files."""

    location: str
    credentials: dict[str, str]
    settings: dict[str, str]

    def deliveries(self) -> list[dict[str, Any]]:
        out = folder_at(f"{self.location}/out", self.credentials)
        rows: list[dict[str, Any]] = []
        for batch in out.names():
            for name in out.folder(batch).names() if batch.startswith("batch=") else []:
                with out.open_input(f"{batch}/{name}") as file:
                    rows += pq.read_table(file).to_pylist()
        return rows


PROGRAM = Path(cluster_program.__file__)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_tables_while_an_executor_is_replaced(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"spark.sql.shuffle.partitions": "3", "spark.log.level": "WARN"}
    run = cluster.submit(PROGRAM, "tables", str(tmp_path), settings=settings)
    assert run.returncode == 0, run.stderr[-5000:]
    told: dict[str, Any] = json.loads((tmp_path / "tables.json").read_text())
    assert (tmp_path / "killed-tables").exists()
    wanted = embedded(*cluster_program.drawn(1))
    for found in told["found"]:
        assert Counter((number, id) for number, id, _ in found) == wanted
        assert found == told["found"][0]
    assert told["others"] == 100
    assert told["files"] == []  # what is listed there would be fetched by every new executor
    chosen = {name: told["settings"][name] for name in ("spark.master", *settings)}
    assert chosen == {"spark.master": cluster.address, **settings}
    assert cluster.local_files() == []


@pytest.fixture(params=["shared folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a stream keeps its checkpoint and its deliveries."""
    if request.param == "shared folder":
        return Place(str(tmp_path), {}, {})
    server = request.getfixturevalue("s3")
    jars = ",".join(map(str, request.getfixturevalue("s3_connector")))
    settings = {"spark.jars": jars, **server.spark_settings}
    return Place(f"s3a://{BUCKET}/{tmp_path.name}", server.credentials, settings)


def test_a_stream_while_executor_worker_and_driver_are_killed(
    cluster: Cluster, place: Place, tmp_path: Path
) -> None:
    events, changes = cluster_program.write_stream(tmp_path)
    arguments = ["stream", str(tmp_path), place.location, "1:executor", "3:worker", "4:driver"]
    settings = {**place.settings, "spark.sql.shuffle.partitions": "2"}
    killed = cluster.submit(PROGRAM, *arguments, settings=settings)
    points = [(tmp_path / f"killed-{batch}").exists() for batch in (1, 3, 4)]
    assert points == [True, True, True], killed.stderr[-5000:]
    assert not (tmp_path / "stream.json").exists()
    cluster.start_worker()
    settings |= {"spark.sql.shuffle.partitions": "5", "spark.default.parallelism": "3"}
    run = cluster.submit(PROGRAM, *arguments, settings=settings)
    assert run.returncode == 0, run.stderr[-5000:]
    told = json.loads((tmp_path / "stream.json").read_text())
    assert told["corrected"] > 0
    assert (told["late"], told["others"], told["files"]) == (0, 100, [])
    state = folder_at(f"{place.location}/checkpoint/tidegate", place.credentials)
    assert state.folder("snapshot").names()
    assert without_versions(net(place.deliveries())) == embedded(events, changes)
