"""Mutation testing of the product code: which small defects do the unit tests not notice?

``python -m devtools.checks.mutation --help``; tests/mutation/README.md has the results and how to read them.

The mutants are Cosmic Ray's. Its own runner starts the tests anew for each: 3.1 s of processor time for one file of
tests, where the harness takes 0.3 s for a mutant by a fork that has everything imported. There are 9,200 of them.
"""
