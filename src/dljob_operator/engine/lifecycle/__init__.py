"""Beginning and end of an operator: the leader election, and the definitions that it installs and removes."""
