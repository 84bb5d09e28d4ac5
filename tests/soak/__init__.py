"""Kill loops for as long as one likes; `make soak` runs them and prints what was seen."""
