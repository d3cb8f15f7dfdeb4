"""Hypothesis profiles, the marker for tests that start Spark, and its fixtures.

The same examples are run each time, on every machine: the profile is derandomized, and constants
that Hypothesis finds in modules which happen to be imported already are not mixed in. Chance comes
with a seed (``--hypothesis-seed=N``, as `make hunt` gives), and the same seed is the same run.

Profiles, chosen by HYPOTHESIS_PROFILE: `ci` for `make test`, `quick` with few examples for
`make check`, `soak` with many for `make soak`.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from support.spark_fixtures import connector_jars, kafka, s3, s3_connector, spark

__all__ = ["connector_jars", "kafka", "s3", "s3_connector", "spark"]

settings.register_profile("ci", deadline=None, max_examples=100, print_blob=True, derandomize=True)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=20)
settings.register_profile(
    "soak", settings.get_profile("ci"), derandomize=False, max_examples=20_000
)

# Hypothesis draws constants of all local modules in sys.modules. Which these are depends on the
# tests that ran before in the same xdist worker, so a run would not repeat.
providers._get_local_constants = lambda: providers.Constants()  # type: ignore[attr-defined]


def pytest_configure(config: pytest.Config) -> None:
    """Load the profile. A seed asks for chance, which a derandomized profile would ignore."""
    profile = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
    chance = config.getoption("--hypothesis-seed") is not None or not profile.derandomize
    settings.register_profile("chosen", profile, derandomize=not chance, database=None)
    settings.load_profile("chosen")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start Spark: those that share a session, and those in a group of its."""
    for item in items:
        groups = {mark.args[0] for mark in item.iter_markers("xdist_group")}
        if groups & {"spark", "connectors", "cluster"}:
            item.add_marker("spark")
