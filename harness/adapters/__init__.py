"""One module per SDK; each imports its SDK lazily, so the core needs none of them (SPEC H10)."""
