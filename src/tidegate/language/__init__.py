"""The language: values, events, filters, advertisements, patterns, and how they relate.

Nothing in here does I/O or reads a clock. Read it in this order:

- `values`, `events`, `expressions`, `syntax`, and `semantics`, which defines when an event matches;
- `parsing`: tokens, cursor, value_parser, parser; then templates and bulk, which parse many texts;
- `algebra`: like, intervals, string_sets, value_sets, normal_form, relations for static filters;
  ranges, extremes, evolution for evolving filters;
- `shapes`, the tables of the matching engine, and `json_values`, values in JSON files;
- `filters`, the public face, on which `variables`, `evolve` and `patterns` build.
"""
