"""The subscriptions of the columnar matcher, in columns and in snapshot files."""
