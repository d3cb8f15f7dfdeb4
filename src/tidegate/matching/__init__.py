"""Matching: which subscriptions does an event match?

`naive` is the oracle, obviously right; `columnar` is the default, fast. Both keep the small
protocol of `matcher`; `engine` is what users hold in their hands.
"""
