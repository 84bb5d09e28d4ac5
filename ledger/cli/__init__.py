"""The ledger's commands of `tachograph`: a module each, imported when its command is asked for."""
