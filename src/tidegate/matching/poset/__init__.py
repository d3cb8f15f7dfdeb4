"""The covering poset of Siena (4.2), static and evolving filters in it, and a matcher on it."""
