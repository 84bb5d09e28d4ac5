"""What a run may use, what that costs, and who is charged for it (SPEC H4, D5, D13)."""
