"""The harness for plain threads (SPEC H1a)."""
