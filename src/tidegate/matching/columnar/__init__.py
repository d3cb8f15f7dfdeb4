"""The columnar index, the default matcher."""
