"""The public order, and whoever follows it (SPEC E8)."""
