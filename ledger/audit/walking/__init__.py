"""A run event by event, with its state at each."""
