"""Patterns in the overlay: factored, delegated and assembled (Siena, 4.2.4)."""
