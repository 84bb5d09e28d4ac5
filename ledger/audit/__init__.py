"""What an outsider can check: a Merkle tree over the log, signed checkpoints of it, and proofs."""
