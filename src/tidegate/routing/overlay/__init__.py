"""The overlay as a broker sees it: domains, spanning trees, neighbours."""
