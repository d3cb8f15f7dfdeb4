"""What clients get: queues in memory and on disk, replays, and clients that are too slow."""
