"""An S3 server on this machine (moto's), and the settings by which Spark reaches it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from support.kafka_broker import free_ports

BUCKET = "tidegate"
_START_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server with one bucket."""

    address: str

    @property
    def credentials(self) -> dict[str, str]:
        """The settings of Hadoop's connector."""
        return {
            "fs.s3a.endpoint": self.address,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "key",
            "fs.s3a.secret.key": "secret",
        }

    @property
    def spark_settings(self) -> Mapping[str, str]:
        return {f"spark.hadoop.{name}": value for name, value in self.credentials.items()}


@contextmanager
def running_s3(folder: Path) -> Iterator[S3Server]:
    """Run a server, whose log is in a folder."""
    [port] = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = folder / "s3.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        _create_bucket(address, process, log)
        yield S3Server(address)
    finally:
        process.kill()
        process.wait()


def _create_bucket(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Create the bucket as soon as the server answers."""
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urlopen(Request(f"{address}/{BUCKET}", method="PUT"), timeout=5).close()
        except (URLError, OSError):
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the S3 server did not start:\n{log.read_text(errors='replace')[-2000:]}")
