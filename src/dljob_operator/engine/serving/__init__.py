"""What the engine serves: probes and metrics."""
