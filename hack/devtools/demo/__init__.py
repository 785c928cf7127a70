"""``make demo``: from a bare machine to a trained model, on a real cluster, and back."""
