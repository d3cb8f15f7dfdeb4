"""The wire form of summaries."""
