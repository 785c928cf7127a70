"""Everything that developers run: the local cluster, generated files, the demonstration, the test suite, checks."""
