"""How brokers are connected: domains, spanning trees, neighbours."""
