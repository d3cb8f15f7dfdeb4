"""Helpers of the tests: strategies, oracles, harnesses and programs that are killed."""
