"""Subscription summaries."""
