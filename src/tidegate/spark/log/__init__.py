"""The event log, and the Spark data source on it."""
