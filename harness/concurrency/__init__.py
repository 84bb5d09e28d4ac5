"""Threads, tasks and futures: how work waits, and how that is stopped."""
