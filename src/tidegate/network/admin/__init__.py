"""The HTTP port of a broker for those who run it: health, state, metrics, events, traces."""
