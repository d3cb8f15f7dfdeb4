"""Batches: many events or requests that a broker handles in one step (see `Broker`)."""
