"""Copies the version (``VERSION``) and the project's addresses (pyproject.toml) to the files that cannot read them."""
