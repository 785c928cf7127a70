"""The endpoint to which programs report their progress: who reports, its certificate, and where it is reached."""
