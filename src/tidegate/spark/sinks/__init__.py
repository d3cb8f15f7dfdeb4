"""Sinks: where a stream writes its deliveries and its rejected rows."""
