"""Speed of brokers over sockets: broker and clients in separate processes, deliveries verified."""
