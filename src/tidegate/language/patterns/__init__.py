"""Patterns: sequences of filters, and their matches in a stream of events (Siena, 3.3)."""
