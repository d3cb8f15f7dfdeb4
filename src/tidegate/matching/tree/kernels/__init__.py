"""Compiled code of the search tree, and the arrays it works on."""
