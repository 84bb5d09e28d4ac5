"""A run, or all of a period, as one file that can be carried away and checked anywhere, with a public key alone."""
