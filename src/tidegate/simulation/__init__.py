"""A deterministic world around brokers: overlays to run them on, and what is measured there."""
