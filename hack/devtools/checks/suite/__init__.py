"""`make test`: runs every part of the test suite, in two parallel lanes, and prints a summary of the time spent."""
