"""The endpoints for programs."""
