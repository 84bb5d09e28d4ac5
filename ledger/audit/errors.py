"""What proofs refuse: each says what is wrong, and nothing that was refused is ever believed in part."""

from __future__ import annotations

from ledger.errors import LedgerError


class InvalidNote(LedgerError, ValueError):
    """Text that is no signed note of the C2SP form, or is larger than a note may be."""

    code = "invalid_note"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the signed note {problem}")


class NotSigned(InvalidNote):
    """No key that is trusted has signed the note."""

    code = "not_signed"

    def __init__(self, key_names: tuple[str, ...]) -> None:
        self.key_names = key_names
        super().__init__(f"has no signature of {' or '.join(key_names) or 'any key, since none is trusted'}")


class BadSignature(InvalidNote):
    """The note names a trusted key whose signature it does not bear."""

    code = "bad_signature"

    def __init__(self, key_name: str) -> None:
        self.key_name = key_name
        super().__init__(f"was not signed as it stands: the signature of {key_name} does not fit it")


class InvalidKey(LedgerError, ValueError):
    """Text that is no Ed25519 key of the form that notes use; it is never quoted, since it may be a secret."""

    code = "invalid_key"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the key {problem}")


class InvalidCheckpoint(LedgerError, ValueError):
    """A note's text that is no checkpoint."""

    code = "invalid_checkpoint"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the checkpoint {problem}")


class InvalidProof(LedgerError, ValueError):
    """Text that is no proof, or a proof that does not prove what it is asked."""

    code = "invalid_proof"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the proof {problem}")
