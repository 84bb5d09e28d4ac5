"""What the viewer itself refuses: one base, of which each kind has its status and its stable code."""

from typing import ClassVar


class Refusal(Exception):
    """A request that is answered with the reason why nothing comes of it."""

    code = "refused"
    status = 403
    headers: ClassVar[dict[str, str]] = {}


class ReadOnly(Refusal):
    """The server has its ledger open for reading alone."""

    code = "read_only"

    def __init__(self) -> None:
        super().__init__("this server only reads its ledger, so it takes no feedback, and neither cancels nor erases")
