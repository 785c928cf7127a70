"""What the engine knows of the cluster: it lists and watches, and keeps what a reconcile needs."""
