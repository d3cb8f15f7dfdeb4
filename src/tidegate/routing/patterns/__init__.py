"""Patterns in the network: factored, delegated and assembled (Siena, 4.2.4)."""
