"""The event log, and the Spark data source that reads and writes it."""
