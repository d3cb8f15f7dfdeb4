from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TopologyError
from tidegate.simulation.overlays.generators import TOPOLOGIES, generate

pytestmark = pytest.mark.slow

SIZED = [name for name, generator in TOPOLOGIES.items() if not generator.fixed]
FIXED = [name for name, generator in TOPOLOGIES.items() if generator.fixed]


@pytest.mark.parametrize("name", SIZED)
@settings(max_examples=settings().max_examples // 4)
@given(brokers=st.integers(1, 120), seed=st.integers(0, 2**63 - 1))
def test_any_size_and_seed(name: str, brokers: int, seed: int) -> None:
    made = generate(name, brokers, seed)  # Topology checks that it is valid and connected
    assert (made.name, len(made.brokers)) == (name, brokers)
    assert generate(name, brokers, seed) == made


@pytest.mark.parametrize("name", FIXED)
def test_fixed_sizes(name: str) -> None:
    made = generate(name)
    assert (made.name, len(made.brokers)) == (name, TOPOLOGIES[name].brokers)
    assert generate(name, len(made.brokers), seed=7) == made
    with pytest.raises(TopologyError, match=rf"'{name}' always has \d+ brokers?, not 50"):
        generate(name, 50)


@pytest.mark.parametrize("name", SIZED)
def test_ten_thousand_brokers(name: str) -> None:
    assert len(generate(name, 10_000).brokers) == 10_000


@pytest.mark.parametrize(
    "name",
    ["random-tree", "random-graph", "transit-stub", "hierarchies-in-graph", "graphs-in-tree"],
)
def test_seeds_differ(name: str) -> None:
    assert len({generate(name, seed=seed).links for seed in range(5)}) == 5


def test_what_is_refused() -> None:
    with pytest.raises(TopologyError, match="no topology 'mesh'; there are centralized, chain"):
        generate("mesh")
    for brokers in (0, -1, 100_001):
        with pytest.raises(TopologyError, match=f"brokers must be 1 to 100000, not {brokers}"):
            generate("chain", brokers)
    with pytest.raises(TopologyError, match=r"the seed must be between 0 and .*, not -1"):
        generate("chain", seed=-1)
