"""Brokers as pure state machines: messages come in and go out, without I/O and without a clock."""
