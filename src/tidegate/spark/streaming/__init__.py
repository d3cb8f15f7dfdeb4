"""Micro-batches: spool, state of the subscriptions, matching and corrections."""
