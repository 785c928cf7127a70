"""Generates jobs, valid and not, sends them to a real API server while the operator runs, and judges what follows."""
