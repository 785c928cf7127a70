"""Compares the pinned versions with the registries, and says when the lines that they belong to end."""
