"""Generates docs/reference from the CRDs' schemas, the settings, the plugins' documentation and the roles' options."""
