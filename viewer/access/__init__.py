"""Who may do what: the rights that routes need."""
