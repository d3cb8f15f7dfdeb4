"""The nodes of the routing tables, and how changes of them come to be sent."""
