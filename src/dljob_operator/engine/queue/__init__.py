"""Which job is next: in which order and at what time workers take them."""
