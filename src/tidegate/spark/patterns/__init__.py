"""Sequence patterns over tables and streams of events."""
