"""Compiled code that writes frames; each file is complete, as Numba's cache looks at one only."""
