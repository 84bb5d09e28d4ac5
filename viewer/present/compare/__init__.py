"""Two runs side by side, as a page says it."""
