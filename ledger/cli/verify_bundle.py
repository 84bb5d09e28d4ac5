"""`tachograph verify-bundle`: whether a bundle holds what it claims, where there is no ledger."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from ledger.audit.bundle.manifest import PeriodManifest, RunManifest
from ledger.audit.bundle.report import BundleReport, PeriodRun
from ledger.audit.bundle.verifying import verify_bundle as verify_file
from ledger.audit.notes.notes import VerifierKey
from ledger.audit.signing.kept import read_keys, read_note
from ledger.cli.common import EXIT_NOT_FOUND, command, fail, json_option, one_line, print_json, progress, table
from ledger.words.format import instant

LOST = "HARNESS_LOST"
"""The reason of a run that recovery has ended."""
FINDING_WIDTH = 400

file_argument = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("verify-bundle")
@click.argument("file", type=file_argument)
@click.option("--key", "key_file", type=file_argument, metavar="FILE", help="The public keys that you trust.")
@click.option(
    "--checkpoint", "checkpoint_file", type=file_argument, metavar="FILE", help="A checkpoint that you have kept."
)
@click.option("--proof", "prove", type=click.IntRange(1), metavar="N", help="Only print the tlog-proof of event N.")
@click.option("--runs", "with_runs", is_flag=True, help="List every run of a period.")
@json_option
@command
async def verify_bundle(
    file: Path,
    key_file: Path | None,
    checkpoint_file: Path | None,
    prove: int | None,
    with_runs: bool,
    as_json: bool,
) -> None:
    """Check everything that a bundle claims, offline; exit code 1 names the first thing that is not so."""
    keys = [] if key_file is None else read_keys(key_file)
    checkpoint = None if checkpoint_file is None else read_note(checkpoint_file)
    with progress("verifying", as_json) as on_progress:
        report = verify_file(file, keys, checkpoint, on_progress, prove)
    if prove is not None and report.is_right:
        if report.proof is None:
            fail(f"no checkpoint covers an event {prove} of this bundle", EXIT_NOT_FOUND)
        click.echo(report.proof.text(), nl=False)
    elif as_json:
        print_json(as_dictionary(report))
    else:
        click.echo("\n".join(lines_of(report, with_runs=with_runs)))
    if not report.is_right:
        raise click.exceptions.Exit(EXIT_NOT_FOUND)


def as_dictionary(report: BundleReport) -> dict[str, object]:
    """The report for programs."""
    finding = report.finding
    return {
        "is_right": report.is_right,
        "finding": finding and {"problem": finding.problem, "place": finding.place, "detail": finding.detail},
        "manifest": report.manifest.model_dump(exclude_none=True, exclude={"members"}),
        "signed_by": report.signed_by,
        "is_key_trusted": report.is_key_trusted,
        "contents": report.content_counts,
        "rows": report.row_count,
        "runs": report.runs,
        "recorded_us": report.recorded_us,
        "is_begin_shown": report.is_begin_shown,
        "is_end_shown": report.is_end_shown,
    }


def lines_of(report: BundleReport, *, with_runs: bool) -> list[str]:
    """The report for people, which never says more than was looked at."""
    manifest = report.manifest
    if isinstance(manifest, RunManifest):
        lines = [f"run       {manifest.session_id}/{manifest.run_id} of ledger {manifest.ledger_id}"]
    else:
        times = f"{instant(manifest.from_us)} to {instant(manifest.to_us)}, as it says"
        lines = [f"period    {times}; of ledger {manifest.ledger_id}"]
    lines.append(f"made      {instant(manifest.made_us)} by {manifest.made_by}, as it says")
    if report.finding is not None:
        return [*lines, f"WRONG     {one_line(str(report.finding), FINDING_WIDTH)}"]
    lines += [f"events    {manifest.event_count:,}, each linked to the one before", *_vouching_of(report)]
    if isinstance(manifest, RunManifest):
        contents = ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in report.content_counts.items())
        lines.append(f"contents  {contents or 'none'}")
        rows = f"{report.row_count:,}, as the events add up to" if report.row_count is not None else "not checked:"
        lines.append(f"rows      {rows}{'' if report.row_count is not None else ' another version has folded them'}")
    else:
        lines += [*_times_of(report, manifest), *_summary_of(report.runs)]
        lines += [_table_of(report.runs)] if with_runs and report.runs else []
    return [*lines, "right     everything that was looked at is as the bundle claims"]


def _vouching_of(report: BundleReport) -> list[str]:
    tree = report.manifest.tree
    if tree is None:
        return ["log       no checkpoint: nothing shows that a ledger ever had these events"]
    uncovered = report.manifest.event_count - tree.covered_count
    covered = f"all are in the log of {tree.size:,} events of {tree.origin}"
    if uncovered:
        covered = f"{tree.covered_count:,} are in the log of {tree.size:,} events of {tree.origin};"
        covered += f" {uncovered:,} came later, and no checkpoint vouches for them"
    lines = [f"log       {covered}"]
    if tree.earlier_size:
        lines.append(f"          which had {tree.earlier_size:,} events at an earlier checkpoint, and only grew")
    for key in report.signed_by:
        fingerprint = VerifierKey.parse(key).fingerprint
        name = one_line(key.partition("+")[0], FINDING_WIDTH)
        lines.append(f"signed    by {name}, key with SHA-256 {fingerprint}")
    if not report.is_key_trusted:
        lines.append("          which is the bundle's own key: trust rests on it, unless you give yours with --key")
    return lines


def _times_of(report: BundleReport, manifest: PeriodManifest) -> list[str]:
    begin, end = manifest.tree.earlier_size, manifest.tree.size
    lines = ["recorded  nothing"]
    if report.recorded_us is not None:
        first, last = map(instant, report.recorded_us)
        lines = [f"recorded  from {first} to {last}: the places {begin:,} to {end - 1:,} of the log"]
    if not report.is_begin_shown:
        lines.append(f"          whether events of the period came before place {begin:,}, nothing in it shows")
    if not report.is_end_shown:
        lines.append(f"          whether the log had more of the period after its {end:,} events, nothing in it shows")
    return lines


def _summary_of(runs: tuple[PeriodRun, ...]) -> list[str]:
    outcomes = Counter(run.outcome for run in runs if run.outcome is not None)
    ended = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))
    lost = sum(run.reason == LOST for run in runs)
    still_open = sum(run.begun_us is not None and run.outcome is None for run in runs)
    others = sum(run.begun_us is None and run.outcome is None for run in runs)
    return [
        f"runs      {len(runs):,}: every one that has an event at these places",
        f"          ended: {ended or 'none'}; by recovery, since their process was lost: {lost:,}",
        f"          begun here and still open: {still_open:,}; begun before and not ended here: {others:,}",
    ]


def _table_of(runs: tuple[PeriodRun, ...]) -> str:
    rows = [["RUN", "BEGUN", "ENDED", "OUTCOME", "REASON", "EVENTS"]]
    for run in runs:
        times = [
            "before" if run.begun_us is None else instant(run.begun_us),
            instant(run.ended_us) if run.ended_us else "-",
        ]
        said = [run.outcome or "-", run.reason or "-", str(run.event_count)]
        rows.append([f"{run.session_id}/{run.run_id}", *times, *said])
    return table(rows, indent="          ")
