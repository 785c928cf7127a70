"""What the local cluster and the machines without Docker share: the standard library alone, for a bare machine."""
