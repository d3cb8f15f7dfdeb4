from __future__ import annotations

import math

import pytest

from tidegate.errors import BadValueError
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic, parse_evolve


@pytest.mark.parametrize(
    "policy", [Lazy(), Periodic(1.0), Periodic(0.25), Cached(60.0), Cached(0.0005)]
)
def test_is_read_as_it_is_written(policy: Evolve) -> None:
    assert parse_evolve(str(policy)) == policy


@pytest.mark.parametrize("text", ["", "lazily", "lazy 1 s", "periodic", "periodic 1", "cached x"])
def test_says_what_would_be_right(text: str) -> None:
    with pytest.raises(BadValueError, match=r"write"):
        parse_evolve(text)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, 1e-9, True, "1"])
@pytest.mark.parametrize("policy", [Periodic, Cached])
def test_takes_seconds_that_make_sense(policy: type[Periodic | Cached], seconds: float) -> None:
    with pytest.raises(BadValueError, match="must be from 1e-06 to 1e\\+09 seconds"):
        policy(seconds)
