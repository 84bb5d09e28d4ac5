"""Erasing over the network: what was asked for and decided, and carrying it out (SPEC D2, E10, D19)."""
