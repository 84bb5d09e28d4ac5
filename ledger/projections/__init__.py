"""What a run's events add up to for its readers: rows, folded from event bodies alone (SPEC E1, D18)."""
