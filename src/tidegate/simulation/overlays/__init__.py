"""Overlays to simulate: generated, read from a file, or taken from the papers."""
