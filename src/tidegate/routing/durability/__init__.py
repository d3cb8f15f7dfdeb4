"""What survives: links that outlive connections, and brokers that come back with their state."""
