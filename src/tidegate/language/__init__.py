"""The language: values, events, filters, advertisements, patterns, and how they relate.

Nothing in here does I/O or knows a clock. Read it in this order: values, events, expressions,
syntax, semantics (what a filter means), tokens, parser; then the algebra: intervals, strings,
valuesets, normal, relations; ranges and evolution for filters that move; shapes and bulk for the
tables of the matching engine; filters is the face of it all.
"""
