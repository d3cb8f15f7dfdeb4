"""Gryphon's parallel search tree: levels are attributes, branches tests, leaves subscriptions."""
