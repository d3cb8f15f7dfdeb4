"""How a broker is configured: its file, and the addresses in it."""
