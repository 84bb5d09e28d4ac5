"""What a policy said of a call before it was let through."""

from typing import Literal

from harness.events.base import BoundaryEvent, Code, Digest, Name


class PolicyDecided(BoundaryEvent):
    """`policy` allowed or denied the call; a denied one is charged nothing and not invoked."""

    type: Literal["policy.decided"] = "policy.decided"
    version: Literal[1] = 1
    kind: Code
    name: Name
    policy: Name
    allowed: bool
    reason: Code
    effect: Code | None = None
    call_id: Name | None = None
    input_digest: Digest | None = None
