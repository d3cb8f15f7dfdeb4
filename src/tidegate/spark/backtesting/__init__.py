"""Backtests: what changed subscriptions would have delivered over history."""
