"""What programs report of their progress, until the status of their job has it."""
