"""Subscriptions that move: how filters evolve with time, and how parameters are kept up to date."""
