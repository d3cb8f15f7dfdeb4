"""Tests mirror the source tree: a module with a function or class has a test file of its name."""

from __future__ import annotations

import ast
from pathlib import Path

from support.pages import ROOT

PACKAGE = ROOT / "src" / "tidegate"

EXEMPT_MODULES = {
    "matching/columnar/sizes.py": "a class of constants",
    "routing/tables/node_table.py": "protocols; those who implement them are tested",
}
"""Modules without a test file, and why."""


def has_code(module: Path) -> bool:
    """Whether a module defines a function or a class."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return any(isinstance(statement, definitions) for statement in tree.body)


def file_for(module: str) -> Path:
    """The test file of a module, given by its path in the package."""
    path = Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.stem.strip('_')}.py"


MODULES = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if has_code(path)}


def test_every_module_has_a_test_file() -> None:
    assert [
        module
        for module in sorted(MODULES)
        if module not in EXEMPT_MODULES and not file_for(module).exists()
    ] == []


def test_no_module_is_exempt_without_need() -> None:
    assert EXEMPT_MODULES.keys() <= MODULES
    assert [module for module in EXEMPT_MODULES if file_for(module).exists()] == []
