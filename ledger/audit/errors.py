"""What proofs refuse: each says what is wrong, and nothing that was refused is ever believed in part."""

from __future__ import annotations

from ledger.errors import LedgerError, LedgerFileError


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


class InconsistentLog(LedgerError):
    """Base: the log is not the one of which a checkpoint was signed, so no further one is."""

    code = "inconsistent_log"

    def __init__(self, origin: str, size: int, problem: str) -> None:
        self.origin = origin
        self.size = size
        self.problem = problem
        super().__init__(
            f"nothing was signed: {problem} the one of which {origin} has a checkpoint with {size:,} events;"
            " run `tachograph verify`; after a failover begin anew with `tachograph key rotate --origin`"
        )


class LogShortened(InconsistentLog):
    """It has fewer events than the checkpoint."""

    code = "log_shortened"

    def __init__(self, origin: str, size: int, found: int) -> None:
        self.found = found
        super().__init__(origin, size, f"the log ends at {found:,} events, and is shorter than")


class LogChanged(InconsistentLog):
    """Its first events are not those of the checkpoint."""

    code = "log_changed"

    def __init__(self, origin: str, size: int) -> None:
        super().__init__(origin, size, "the log is another one than")


class DamagedTree(LedgerError):
    """What is stored of the tree is not what the events say."""

    code = "damaged_tree"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}: run `tachograph verify`")


class AnchorError(LedgerFileError):
    """The anchor file cannot be read or added to."""

    code = "anchor_error"


class KeyFileError(LedgerFileError):
    """The file of a private key cannot be used as one; what it holds is never quoted."""

    code = "key_file_error"


class RevokedKey(LedgerError):
    """The key was revoked in this ledger, so nothing is signed with it."""

    code = "revoked_key"

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        super().__init__(f"key {key_id} was revoked: use another one")


class ReplacedKey(LedgerError):
    """The key was replaced in this ledger, so nothing more is signed with it."""

    code = "replaced_key"

    def __init__(self, key_id: str, replaced_by: str) -> None:
        self.key_id = key_id
        self.replaced_by = replaced_by
        super().__init__(
            f"key {key_id} was replaced by {replaced_by}: sign with that one,"
            " or finish a rotation that was cut short with `tachograph key rotate`"
        )


class SigningOff(LedgerError):
    """The ledger was opened without a key."""

    code = "signing_off"

    def __init__(self) -> None:
        super().__init__("the ledger was opened without a key, so nothing can be signed")


class NoCheckpoint(LedgerError):
    """No checkpoint covers the run yet, and none came in time."""

    code = "no_checkpoint"

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"no checkpoint covers run {run_id} yet")


class KeyNotFound(LedgerError, LookupError):
    """The ledger's own stream knows no such key."""

    code = "key_not_found"

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        super().__init__(f"there is no key {key_id}")


class NotEnclosed(LedgerError):
    """No checkpoints enclose what is to be exported."""

    code = "not_enclosed"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"no checkpoint encloses it: {problem}")
