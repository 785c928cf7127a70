"""Helpers that tests share: builders of jobs, a fake cluster, jobs on a real cluster, upstream manifests."""
