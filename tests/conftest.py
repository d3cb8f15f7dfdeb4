"""Hypothesis profiles, and the fixtures for Spark and Kafka.

The profile `ci` is for every run, `soak` for `make soak`; HYPOTHESIS_PROFILE chooses.
"""

import os

from hypothesis import settings

from support.spark_fixtures import connector_jars, kafka, spark

__all__ = ["connector_jars", "kafka", "spark"]

settings.register_profile("ci", deadline=None, max_examples=200, print_blob=True)
settings.register_profile("soak", settings.get_profile("ci"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
