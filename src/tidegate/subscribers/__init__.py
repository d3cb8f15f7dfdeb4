"""Subscriber classes with parameters and handlers, dead reckoning, and the hub that runs them."""
