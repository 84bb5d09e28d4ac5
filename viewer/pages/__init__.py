"""The endpoints for people."""
