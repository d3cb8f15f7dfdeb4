"""Where a pipeline writes deliveries and rejected rows to."""
