"""The local cluster, and what the laboratory and the demonstration start on it."""
