"""Other versions of Spark, each installed into a folder of its own that comes before the newest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_INSTALL_SECONDS_MAX = 300


def installed_spark(version: str, folder: Path) -> Path:
    """A folder for `PYTHONPATH` that has PySpark of a version such as ``4.0``.

    It is in a cache, so that only the first run on a machine fetches it. Raises
    CalledProcessError if it cannot be fetched.
    """
    cache = Path(os.environ.get("TIDEGATE_JARS") or Path.home() / ".cache" / "tidegate")
    target = cache / f"pyspark-{version}"
    if not target.is_dir():
        fetched = folder / "pyspark"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-deps"]
        command += ["--target", str(fetched), f"pyspark=={version}.*"]
        subprocess.run(command, check=True, capture_output=True, timeout=_INSTALL_SECONDS_MAX)
        cache.mkdir(parents=True, exist_ok=True)
        try:
            shutil.move(fetched, target)
        except OSError:
            if not target.is_dir():  # another process was faster
                raise
    return target
