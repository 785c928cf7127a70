"""Installs the pinned packages into .venv; uses only the standard library, because it runs before they are there."""
