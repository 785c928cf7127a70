"""What `fuzz` and `soak` share: one operator process on the local cluster with simulated nodes, and jobs for it."""
