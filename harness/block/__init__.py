"""The blocks in which a run and its nested scopes live: opened, and closed on every way out (SPEC H5, D5)."""
