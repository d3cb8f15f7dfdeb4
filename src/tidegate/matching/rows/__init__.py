"""Subscriptions as rows and entries, events as rows of floats: what compiled matchers share."""
