"""Where a pipeline reads events from."""
