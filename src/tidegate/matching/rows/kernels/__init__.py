"""Compiled code on entries that does not depend on how a matcher indexes them."""
