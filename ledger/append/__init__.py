"""How an append goes: from a submission in any thread to rows and links, whatever the engine (SPEC E5, D12)."""
