"""What the demo raises: one base, a permanent `code`, one line for people."""


class DemoError(Exception):
    """Base of every error that the demo raises on purpose."""

    code = "demo_error"

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)
