"""``make bundle``: generates the bundle for the Operator Lifecycle Manager (OLM) from other files of the repository."""
