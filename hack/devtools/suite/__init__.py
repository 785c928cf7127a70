"""`make test`: every part of the test suite, in two lanes side by side, with an account of where the time went."""
