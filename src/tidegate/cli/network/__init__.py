"""Commands that run brokers, or talk to them."""
