"""What a broker keeps on disk: confirmed events, queues, positions and its state."""
