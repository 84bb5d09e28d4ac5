"""Checks everything that a bundle claims, offline: no database, no network, nothing but the file and a public key."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from ledger.audit.bundle import limits
from ledger.audit.bundle.contents import check_contents
from ledger.audit.bundle.errors import BundleWrong, InvalidBundle
from ledger.audit.bundle.manifest import (
    CONTENT_FOLDER,
    MANIFEST,
    Manifest,
    PeriodManifest,
    RunManifest,
    TreeClaim,
    parse_manifest,
)
from ledger.audit.bundle.period_check import check_period_events
from ledger.audit.bundle.reading import Archive
from ledger.audit.bundle.report import BundleFinding, BundleReport
from ledger.audit.bundle.rows import FoldedRows, is_of_this_fold
from ledger.audit.bundle.run_check import check_run_events
from ledger.audit.bundle.tree_check import TreeCheck, Vouching, open_vouching
from ledger.audit.errors import InvalidCheckpoint
from ledger.audit.notes.checkpoint import Checkpoint, SignedCheckpoint
from ledger.audit.notes.notes import VerifierKey

Progress = Callable[[int, int], None]
"""Told how many bytes were looked at, and of how many."""


def verify_bundle(
    path: Path,
    keys: Sequence[VerifierKey] = (),
    checkpoint: SignedCheckpoint | None = None,
    on_progress: Progress = lambda _done, _of: None,
    prove: int | None = None,
) -> BundleReport:
    """Check the bundle in that file, against these keys, and a checkpoint that was kept elsewhere.

    `prove` is an event, counted from 1, of which the report is to have a proof of its own, in memory for all events.
    Without keys, those that the bundle brings along are taken, and then trust rests on it. `InvalidBundle` for what is
    none, or is beyond what a bundle may hold; `InvalidNote` or `InvalidCheckpoint` where `checkpoint` is not right, or
    the bundle says nothing of the log at that size.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidBundle(f"cannot be read ({error.strerror})") from error
    with file:
        return _Check(file, keys, checkpoint, on_progress, prove).report()


def read_manifest(archive: Archive) -> Manifest:
    """What the bundle claims; `InvalidBundle` if it says nothing that can be read."""
    try:
        return parse_manifest(archive.read(MANIFEST, limits.MAX_MANIFEST_BYTES))
    except BundleWrong as error:
        raise InvalidBundle(f"has no manifest that can be read ({error.detail})") from None


class _Check:
    def __init__(
        self,
        file: BinaryIO,
        keys: Sequence[VerifierKey],
        checkpoint: SignedCheckpoint | None,
        on_progress: Progress,
        prove: int | None,
    ) -> None:
        self._archive = Archive(file, self._heard)
        self._on_progress = on_progress
        self._done_bytes = 0
        self._keys = keys
        self._kept = checkpoint
        self._prove = prove
        self._report = BundleReport(read_manifest(self._archive))

    def report(self) -> BundleReport:
        try:
            self._check()
        except BundleWrong as error:
            finding = BundleFinding(error.problem, error.place, error.detail)
            self._report = dataclasses.replace(self._report, finding=finding)
        return self._report

    def _heard(self, size_bytes: int) -> None:
        self._done_bytes += size_bytes
        self._on_progress(min(self._done_bytes, self._archive.size_bytes), self._archive.size_bytes)

    def _check(self) -> None:
        manifest = self._report.manifest
        _check_members(self._archive, manifest)
        tree = None
        if manifest.tree is not None:
            vouching = open_vouching(self._archive, manifest, manifest.tree, self._keys)
            signed_by = tuple(map(str, vouching.signed_by))
            self._report = dataclasses.replace(self._report, signed_by=signed_by, is_key_trusted=bool(self._keys))
            self._compare_with_kept(manifest.tree, vouching)
            tree = TreeCheck(self._archive, manifest, manifest.tree, vouching, self._prove)
        elif self._keys or self._kept is not None:
            raise BundleWrong("not_signed", MANIFEST, "the bundle has no checkpoint, so nobody vouches for its events")
        if isinstance(manifest, RunManifest):
            self._check_run(manifest, tree)
        else:
            assert tree is not None, "a period is what is between checkpoints"
            runs, recorded_us = check_period_events(self._archive, manifest, tree)
            self._report = dataclasses.replace(self._report, runs=runs, recorded_us=recorded_us)
        if tree is not None and self._prove is not None:
            self._report = dataclasses.replace(self._report, proof=tree.proof())

    def _check_run(self, manifest: RunManifest, tree: TreeCheck | None) -> None:
        rows = FoldedRows(manifest.run_id) if is_of_this_fold(self._archive, manifest) else None
        named = check_run_events(self._archive, manifest, tree, rows)
        counts = check_contents(self._archive, manifest, named)
        row_count = None if rows is None else rows.check(self._archive, manifest)
        self._report = dataclasses.replace(self._report, content_counts=dict(counts), row_count=row_count)

    def _compare_with_kept(self, claim: TreeClaim, vouching: Vouching) -> None:
        if self._kept is None:
            return
        kept = self._kept.open(self._keys or vouching.signed_by, origin=claim.origin)
        known: dict[int, Checkpoint | None] = {claim.size: vouching.checkpoint, claim.earlier_size: vouching.earlier}
        found = known.get(kept.size)
        if found is None:
            raise InvalidCheckpoint(f"is of {kept.size:,} events, and the bundle says nothing of the log at that size")
        if found.root != kept.root:
            raise BundleWrong("checkpoint_differs", "checkpoint.txt", "the one that was kept has another root")


def _check_members(archive: Archive, manifest: Manifest) -> None:
    listed = [member.name for member in manifest.members]
    present = {name for name in archive.entries if not name.startswith(CONTENT_FOLDER)}
    if listed != sorted(manifest.member_names()) or present != {MANIFEST, *listed}:
        raise BundleWrong("member_missing", MANIFEST, "a member is missing, or there is one that no such bundle has")
    for member in manifest.members:
        if archive.entries[member.name].size_bytes != member.size_bytes:
            raise BundleWrong("member_differs", member.name, "it has another size than the manifest says")
    if isinstance(manifest, PeriodManifest) and len(present) != len(archive.entries):
        raise BundleWrong("member_missing", MANIFEST, "a period has contents, which only a run's bundle may have")
