"""Matching: which subscriptions does an event match?

`naive` is the oracle, obviously correct; `columnar` is the default, fast; `registry` lists all.
Each implements the small protocol of `matcher`. `evolving` and `history` wrap matchers. `engine`
has the class that users work with.
"""
