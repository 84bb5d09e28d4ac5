"""The trace page, part by part."""
