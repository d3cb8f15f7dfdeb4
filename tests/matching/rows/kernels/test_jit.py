"""Code compiled from older sources is deleted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tidegate.matching.rows.kernels import jit
from tidegate.matching.rows.kernels.jit import forget_outdated, inlined, is_first_run


def write(path: Path, age_s: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("", encoding="ascii")
    os.utime(path, (1_000_000 - age_s, 1_000_000 - age_s))
    return path


def test_what_is_older_than_any_source_of_a_kernel_goes(tmp_path: Path) -> None:
    old, new = tmp_path / "old" / "kernels", tmp_path / "more" / "new" / "kernels"
    write(old / "old.py", age_s=100)
    write(new / "new.py", age_s=10)
    write(tmp_path / "engine.py", age_s=1)  # no part of any kernel
    outdated = write(old / "__pycache__" / "old.f-1.py311.nbi", age_s=50)
    recent = write(new / "__pycache__" / "new.g-1.py311.1.nbc", age_s=5)
    other = write(old / "__pycache__" / "old.cpython-311.pyc", age_s=500)
    assert forget_outdated(tmp_path) == 1
    assert not outdated.exists()
    assert recent.exists()
    assert other.exists()
    write(tmp_path / "arrays.py", age_s=1)
    assert forget_outdated(tmp_path) == 1
    assert not recent.exists()


def test_a_folder_without_a_cache(tmp_path: Path) -> None:
    assert forget_outdated(tmp_path) == 0
    assert is_first_run(tmp_path)
    write(tmp_path / "kernels" / "__pycache__" / "new.g-1.py311.1.nbc", age_s=5)
    assert not is_first_run(tmp_path)


def test_kernels_stand_in_folders_that_are_looked_into() -> None:
    """Else the guard above would keep code that was compiled from older sources."""
    matching = Path(jit.__file__).parents[2]
    elsewhere = [
        path
        for path in matching.rglob("*.py")
        if path.parent.name != "kernels"
        and re.search(r"^@(kernel|lean|lean_inlined|inlined)$", path.read_text(), re.M)
    ]
    assert elsewhere == []


def test_compiled_functions_call_one_another() -> None:
    @inlined
    def doubled(x: int) -> int:
        return 2 * x

    def quadrupled(x: int) -> int:
        return doubled(doubled(x))

    assert inlined(quadrupled)(3) == 12


COMPILING = """
import sys
import tidegate
from numba.core import event

class Compiled(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("tidegate."):
            print(function.__module__, function.__qualname__)

    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
engine = tidegate.Engine()
sub = engine.subscribe("symbol = 'IBM' and price < :limit", limit=10.0)
engine.match({"symbol": "IBM", "price": 9.5})
sub.update(limit=30.0)
print("many:")
for number in range(1100):
    engine.subscribe("symbol = 'IBM' and price < :limit", limit=number)
engine.match({"symbol": "IBM", "price": 9.5})
"""


@pytest.mark.slow
def test_a_kernel_is_compiled_once_and_when_it_is_needed(tmp_path: Path) -> None:
    """A literal among the arguments of a kernel would have it compiled for its own type, too."""
    ran = subprocess.run(
        [sys.executable, "-c", COMPILING],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, many = ran.stdout.split("many:\n")
    compiled = Counter(ran.stdout.splitlines())
    assert {name: times for name, times in compiled.items() if times > 1} == {}
    assert "match_flat" in first
    assert "match_events" not in first
    assert "match_events" in many
    assert "envelope" not in ran.stdout  # nothing moves
