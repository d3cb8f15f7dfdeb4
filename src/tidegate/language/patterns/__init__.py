"""Sequences of filters, and finding their matches in a stream of events (Siena, 3.3)."""
