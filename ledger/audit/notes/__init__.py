"""Signed notes, checkpoints and proofs in the forms of C2SP; nothing here needs a database (SPEC E9)."""
