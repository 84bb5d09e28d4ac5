"""The viewer shows exactly one run, exactly as it happened, and serves the read API."""

from viewer.app import create_app

__all__ = ["create_app"]
