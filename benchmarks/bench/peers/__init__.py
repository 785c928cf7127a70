"""The peers: how each is started, and how it is told that it is ready."""
