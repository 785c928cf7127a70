"""A local cluster on a machine without Docker, registry or image downloads: see README.md."""
