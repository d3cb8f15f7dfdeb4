"""Who may connect to a broker, and what they may do there."""
