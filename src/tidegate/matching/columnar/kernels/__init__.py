"""Compiled code of the columnar index, on the arrays of its parts."""
