"""Commands that need more than a few lines: each has a function that takes the arguments and returns the exit code."""
