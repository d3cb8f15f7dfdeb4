"""Routing by link matching: virtual links, the search for the links of an event, flooding."""
