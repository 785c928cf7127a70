"""docs/reference: every field of the CRDs, every plugin and every role, written from what they say of themselves."""
