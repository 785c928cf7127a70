"""Generates docs/reference from the CRDs' schemas, the plugins' documentation and the roles' argument specs."""
