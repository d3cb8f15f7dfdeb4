"""What people write classes with: parameters, handlers, dead reckoning, and the hub."""
