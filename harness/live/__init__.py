"""The one mutable thing of a run, which all its handles share (SPEC H1, D12)."""
