"""The client: `tidegate.connect` and `tidegate.connect_sync`."""
