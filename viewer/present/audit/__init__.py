"""The audit pages in numbers, words and geometry."""
