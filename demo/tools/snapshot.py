"""Figures of a machine at one moment, kept in a file: so a machine can be looked at that is elsewhere, or was."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from demo.bounds import SNAPSHOT_BYTES_MAX
from demo.tools.errors import SnapshotUnreadable
from demo.tools.figures import HostMetrics, Process, Section


class Snapshot(BaseModel):
    """Everything that the tools for figures tell, in their own shape."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: HostMetrics
    processes: list[Process]

    def metrics(self, sections: Sequence[Section]) -> HostMetrics:
        """The sections that are asked for, of those that there are."""
        found = HostMetrics()
        for section in sections:
            if section in self.host:
                found[section] = self.host[section]
        if "disks" in sections:
            found["disks_skipped"] = self.host.get("disks_skipped", [])
        return found


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in a file; `SnapshotUnreadable` if there is none."""
    try:
        with path.open("rb") as stream:
            data = stream.read(SNAPSHOT_BYTES_MAX + 1)
    except OSError as error:
        raise SnapshotUnreadable(f"the snapshot `{path}` cannot be read: {error.strerror}") from error
    if len(data) > SNAPSHOT_BYTES_MAX:
        raise SnapshotUnreadable(f"the snapshot `{path}` is larger than {SNAPSHOT_BYTES_MAX} bytes")
    try:
        return Snapshot.model_validate_json(data)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        raise SnapshotUnreadable(f"the snapshot `{path}` is none: {where}: {fault['msg']}") from None
