"""The peers: how each is started, and how its readiness is detected."""
