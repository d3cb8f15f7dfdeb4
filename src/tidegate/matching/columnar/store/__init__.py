"""What the columnar matcher remembers of its subscriptions, in columns and in snapshot files."""
