"""Backups, copies in other engines, and what becomes of a ledger that was brought elsewhere."""
