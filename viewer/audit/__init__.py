"""What the audit pages and their JSON twins are made of, beside words and templates."""
