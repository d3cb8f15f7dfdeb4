"""Brokers as state machines: what each does with a message, and to whom it sends what."""
