"""Matchers around a matcher that decide when an evolving filter is evaluated."""
