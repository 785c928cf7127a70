"""The benchmark: compares this operator, its peers and a bare API client in one run on one cluster."""
