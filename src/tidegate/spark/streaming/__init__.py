"""Streams: setting up the query, running a micro-batch, and the state between micro-batches."""
