"""Kinds of cells: how the 64 bits of a value in a row are to be read.

Both the kernels and the store switch on these constants, so they have a module of their own.
"""

UNDEFINED, BOOLEAN, INTEGER, FLOAT, STRING, TIME = range(6)
"""No value; 0 or 1; an integer; the bits of a float; a number in the string pool; microseconds."""

NUMBERS = (INTEGER, FLOAT)
