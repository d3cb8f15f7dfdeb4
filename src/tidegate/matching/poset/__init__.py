"""The covering poset of Siena (4.2), and the filters that move in it."""
