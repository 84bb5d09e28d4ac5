"""What a ledger puts into a bundle."""
