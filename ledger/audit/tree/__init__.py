"""The Merkle tree of RFC 6962 and its tiles; nothing here reads or writes (SPEC E9)."""
