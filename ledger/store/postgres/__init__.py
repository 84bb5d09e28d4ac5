"""Where the log lies: a schema of a PostgreSQL database, shared by any number of machines."""
