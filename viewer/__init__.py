"""Shows exactly one run, exactly as it happened, as pages and as JSON. Start with `viewer.app.create_app`."""
