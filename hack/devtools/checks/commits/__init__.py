"""Checks commit subjects, read from a message file or from a range of commits."""
