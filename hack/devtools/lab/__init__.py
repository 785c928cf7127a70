"""Measurements of the operator on the local cluster: speed, faults, generated jobs, endurance."""
