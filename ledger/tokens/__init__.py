"""Who may read a ledger over the network: tokens, and the links and sessions by which people sign in with them."""
