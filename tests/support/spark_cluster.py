"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own.

Each worker has one core, 1 GB for its executor, and folders of its own, so that nothing is shared
by accident. `submit` runs a program on the cluster with `spark-submit`.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

_SPARK_HOME = Path(pyspark.__file__).parent
_TESTS = Path(__file__).parents[1]
_START_SECONDS_MAX = 60
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_SUBMIT_SECONDS_MAX = 200

# These processes live for a minute; the optimising compiler would take most of it.
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
    "spark.cores.max": "2",
}


@dataclass
class Cluster:
    """A running cluster."""

    folder: Path
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    address: str = ""
    _workers: int = 0

    def start_master(self) -> None:
        arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = self._start("master", "org.apache.spark.deploy.master.Master", arguments, {})
        self.address = _wait_for(r"Starting Spark master at (spark://\S+)", log)

    def start_worker(self) -> None:
        name = f"worker-{self._workers}"
        self._workers += 1
        arguments = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1G"]
        arguments += ["--work-dir", str(self.folder / name / "work"), self.address]
        local = {"SPARK_LOCAL_DIRS": str(self.folder / name / "local")}
        log = self._start(name, "org.apache.spark.deploy.worker.Worker", arguments, local)
        _wait_for("(Successfully registered) with master", log)

    def _start(
        self, name: str, kind: str, arguments: Sequence[str], more: Mapping[str, str]
    ) -> Path:
        (self.folder / name).mkdir()
        log = self.folder / name / "log"
        command = [str(_SPARK_HOME / "bin" / "spark-class"), kind, *arguments]
        environment = {
            **_environment(), **more,
            "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": _JAVA_OPTIONS,
        }  # fmt: skip
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, env=environment, cwd=self.folder / name, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True, preexec_fn=_die_with_parent,
            )  # fmt: skip
        self._processes.append(process)
        return log

    def submit(
        self, program: Path, *arguments: str, settings: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; its working folder is not that of the workers."""
        options = {**SETTINGS, **(settings or {})}
        command = [str(_SPARK_HOME / "bin" / "spark-submit"), "--master", self.address]
        for name, value in options.items():
            command += ["--conf", f"{name}={value}"]
        (self.folder / "driver").mkdir(exist_ok=True)
        environment = {**_environment(), "SPARK_LOCAL_DIRS": str(self.folder / "driver" / "local")}
        process = subprocess.Popen(
            [*command, str(program), *arguments], env=environment, cwd=self.folder / "driver",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=_die_with_parent,
        )  # fmt: skip
        try:
            out, errors = process.communicate(timeout=_SUBMIT_SECONDS_MAX)
        finally:
            _kill_group(process)
        return subprocess.CompletedProcess(command, process.returncode, out, errors)

    def local_files(self) -> list[Path]:
        """The files in the local folders of all workers."""
        return [path for path in self.folder.glob("worker-*/local/**/*") if path.is_file()]

    def stop(self) -> None:
        for process in reversed(self._processes):
            _kill_group(process)


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Run a cluster with its files in a folder."""
    cluster = Cluster(folder)
    try:
        cluster.start_master()
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        cluster.stop()


def _environment() -> dict[str, str]:
    paths = [str(_TESTS), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "SPARK_HOME": str(_SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def _wait_for(pattern: str, log: Path) -> str:
    """Wait until a line of a log has a pattern; returns the pattern's group."""
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.05)
    raise TimeoutError(f"{log} has no {pattern!r}:\n{log.read_text(errors='replace')[-2000:]}")


def _die_with_parent() -> None:
    """Let the system kill this process when the tests end without stopping it, as by SIGTERM."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_group(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Kill a process and those that it started. Python workers exit when their executor does."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
