"""The bundle for the Operator Lifecycle Manager (OLM), made of what the repository says elsewhere: ``make bundle``."""
