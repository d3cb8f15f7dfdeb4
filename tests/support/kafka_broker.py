"""A real Kafka broker: one node that is its own controller, run from jars that Maven fetches."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import ConnectorError
from tidegate.spark.connectors import JarSet, fetch_jars

VERSION = "4.3.1"
BROKER_JARS = JarSet(f"kafka-broker-{VERSION}", (f"org.apache.kafka:kafka_2.13:{VERSION}",))

# 16 bytes in base 64. Not random, because a tool takes an id with a leading dash as an option.
_CLUSTER_ID = "dGlkZWdhdGUtdGVzdHMtMQ"

_START_SECONDS_MAX = 60
_STOP_SECONDS_MAX = 20

_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
num.partitions=2
auto.create.topics.enable=true
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """Run a broker with its data in a folder; yields its address. Raises ConnectorError."""
    classes = f"{fetch_jars(BROKER_JARS)[0].parent}/*"
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes]
    broker, controller = free_ports(2)
    settings = folder / "server.properties"
    text = _SETTINGS.format(broker=broker, controller=controller, folder=folder)
    settings.write_text(text, encoding="utf-8")
    tool = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(settings)]
    formatted = subprocess.run([*java, *tool], check=False, capture_output=True)
    if formatted.returncode != 0:
        raise ConnectorError(f"Kafka cannot format its storage: {formatted.stderr.decode()}")
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        try:
            _wait_for(process, broker, folder / "broker.log")
            yield f"localhost:{broker}"
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_ports(count: int) -> list[int]:
    """Free ports, all of them different: each is held until the last one is known."""
    held = [socket.create_server(("localhost", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until the broker accepts connections, which it does once it is ready."""
    for _ in range(_START_SECONDS_MAX * 10):
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
        except OSError:
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        return
    tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise ConnectorError(f"the Kafka broker did not start:\n{tail}")
