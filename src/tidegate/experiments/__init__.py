"""Measurements: each module gives rows, which the command line prints or charts."""
