"""The subscriptions of a compiled matcher, in columns and in snapshot files."""
