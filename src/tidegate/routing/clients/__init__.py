"""The clients of a broker: their sessions, named subscriptions, and moves between brokers."""
