"""A seeded run of faults against the operator on the local cluster; see ``docs/chaos.md``."""
