"""The benchmark: this operator, its peers and the bare API, side by side in one run on one cluster."""
