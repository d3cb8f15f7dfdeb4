"""Subscriptions through time: changes, versions, as-of answers and what-if changes."""
