"""``make demo``: creates a cluster, starts the operator, trains a model, and removes everything again."""
