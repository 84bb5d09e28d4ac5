"""Erasing content, and the lists of what was erased (SPEC E10, D19)."""
