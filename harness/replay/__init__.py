"""A recorded run is executed again: the agent's own code, with everything else from the record."""

from harness.recording import RecordedContent, Recording
from harness.replay.outcome import Difference, Divergence, Kind, Reexecution, Unavailable, Verdict
from harness.replay.reexecute import Agent, SyncAgent, reexecute, reexecute_sync
from harness.replay.results import Decoder, Decoders, Errors, RecordedChunk, RecordedFailure, RecordedObject

__all__ = [
    "Agent",
    "Decoder",
    "Decoders",
    "Difference",
    "Divergence",
    "Errors",
    "Kind",
    "RecordedChunk",
    "RecordedContent",
    "RecordedFailure",
    "RecordedObject",
    "Recording",
    "Reexecution",
    "SyncAgent",
    "Unavailable",
    "Verdict",
    "reexecute",
    "reexecute_sync",
]
