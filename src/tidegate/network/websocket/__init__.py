"""The WebSocket listener of a broker, for browsers."""
