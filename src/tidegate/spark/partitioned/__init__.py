"""Indexes in many files, built by the workers: for more subscriptions than the driver can hold."""
