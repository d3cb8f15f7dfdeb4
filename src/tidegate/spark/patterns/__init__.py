"""Sequence patterns over DataFrames and streams."""
