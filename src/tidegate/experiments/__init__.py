"""Benchmarks: each module returns rows, which the command line prints or draws."""
