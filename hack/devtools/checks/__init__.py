"""What runs before a commit lands: linters, tests, mutations."""
