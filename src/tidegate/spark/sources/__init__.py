"""Sources: streams and tables of events, read from files and Kafka and checked by a schema."""
