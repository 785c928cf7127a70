"""Many short jobs through one operator process: whether its memory, descriptors or latency grow with their number."""
