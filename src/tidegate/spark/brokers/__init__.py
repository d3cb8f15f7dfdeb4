"""Brokers as a source and a sink of Spark."""
