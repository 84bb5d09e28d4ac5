"""Who signs what the log is, with which key, when, and where it is told (SPEC E9)."""
