"""A run over time: its spans, how they are grouped, and where each is drawn."""
