from __future__ import annotations

import pytest

from tidegate.language.nearest_names import CHARS_MAX, COMPARED_MAX, nearest_name


@pytest.mark.parametrize(
    ("name", "names", "nearest"),
    [
        ("prize", ("symbol", "price"), "price"),
        ("Symbol", ("symbol", "price"), "symbol"),
        ("SYMBOL", ("price", "symbols", "symbol"), "symbol"),
        ("X", ("y", "x"), "x"),
        ("xyz", ("symbol", "price"), None),
        ("x", (), None),
        ("", ("symbol",), None),
    ],
)
def test_the_nearest_of_few(name: str, names: tuple[str, ...], nearest: str | None) -> None:
    assert nearest_name(name, names) == nearest


@pytest.mark.parametrize("name", ["attribut731", "attribute731x", "atribute731", "ttribute731"])
def test_the_nearest_of_many(name: str) -> None:
    """By its beginning, or by its end where the mistake is at the beginning."""
    names = tuple(f"attribute{number}" for number in range(10_000))
    assert len(names) > COMPARED_MAX
    assert nearest_name(name, names) == "attribute731"


def test_a_very_long_name_is_like_no_other() -> None:
    name = "a" * (CHARS_MAX + 1)
    assert nearest_name(name, (name[1:],)) is None
