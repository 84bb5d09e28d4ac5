"""The read side: one moment of the ledger, and nothing that can write."""
