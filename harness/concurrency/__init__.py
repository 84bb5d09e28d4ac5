"""Threads, tasks and futures: how work waits, and how that is stopped; nothing here knows of a run."""
