"""Crossing one boundary: asked for, admitted, invoked, and ended on record (SPEC D12)."""
