"""Where the log lies: one SQLite file, shared by the processes of one machine; or what `postgres` has."""
