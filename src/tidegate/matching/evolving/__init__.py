"""Matchers around a matcher that add the evolve modes it lacks: lazy, periodic, cached."""
