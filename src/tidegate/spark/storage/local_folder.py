"""A folder on a local disk, or mounted or shared under the same path on all machines."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

_PART = ".part"


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder of the system; files appear under their names by renames."""

    path: Path

    @property
    def location(self) -> str:
        return str(self.path)

    @property
    def spark_path(self) -> str:
        return f"file://{self.path}"

    def folder(self, name: str) -> LocalFolder:
        return LocalFolder(self.path / name)

    def names(self) -> list[str]:
        try:
            found = os.listdir(self.path)
        except FileNotFoundError:
            return []
        return sorted(name for name in found if not name.endswith(_PART))

    def exists(self, name: str) -> bool:
        return (self.path / name).exists()

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        target, part = self._target(name)
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)

    @property
    def has_rename(self) -> bool:
        return True

    def rename(self, name: str, target: str) -> None:
        (self.path / target).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).rename(self.path / target)

    def remove(self, name: str) -> None:
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def open_input(self, name: str) -> pa.NativeFile:
        # Mapped, so nothing is copied: record batches keep the mapping alive.
        return pa.memory_map(str(self.path / name))

    def open_output(self, name: str) -> pa.NativeFile:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return pa.OSFile(str(path), "wb")

    def download(self, name: str, path: Path) -> None:
        shutil.copyfile(self.path / name, path)

    def upload(self, path: Path, name: str) -> None:
        target, part = self._target(name)
        shutil.copyfile(path, part)
        part.replace(target)

    def _target(self, name: str) -> tuple[Path, Path]:
        """The path of a file, and one under which to write it; their folder exists afterwards."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target, target.with_name(f"{target.name}.{uuid.uuid4().hex}{_PART}")
