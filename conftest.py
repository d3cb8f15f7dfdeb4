"""Doctests are collected by import; without PySpark its layer is left out."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("pyspark") else ["src/tidegate/spark"]
