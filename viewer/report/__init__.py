"""A report on a period as one file to print: what `ledger.audit.report` found, in words, tables and nothing else."""
