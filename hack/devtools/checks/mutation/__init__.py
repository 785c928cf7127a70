"""Mutation testing of the product code: which small defects do the unit tests not notice?

``python -m devtools.checks.mutation --help``; tests/mutation/README.md has the results and how to read them.
"""
