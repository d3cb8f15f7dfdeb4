"""Pictures of overlays, with the loads of their links and brokers."""
