"""Checks a tag before it is released."""
