"""Scalars and findings in TensorBoard's event files, through the writer of tensorboardX.

`SummaryWriter` writes in a thread of its own, which a full disk ends silently, so the events are written one
by one. Format: tensorboard/compat/proto/event.proto of https://github.com/tensorflow/tensorboard; its text
plugin shows Markdown.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allaboard.faces.experiments.event_folder import find_event_folder
from allaboard.faces.experiments.scalar_table import RUN, ScalarPoint
from allaboard.faces.experiments.tracker import MissingTrackerError, Record
from allaboard.faces.experiments.tracker_settings import AUTO
from allaboard.facts import Snapshot

SUBFOLDER = "allaboard"
"""Folder within the script's own: TensorBoard shows it as a run of its own, beside the script's."""
FIRST_SEARCH_PAUSE_S, LAST_SEARCH_PAUSE_S = 5.0, 300.0
"""Seconds of the run until the script's folder is searched again: at first, and at most."""
FINDINGS = f"{RUN}/findings"
"""Tag of the findings; TensorBoard has scalars and texts apart."""


class TensorBoardTracker:
    """Writes to one folder, or to one within the script's own."""

    def __init__(self, folder: str) -> None:
        self.subject = "scalars and findings for TensorBoard (--tensorboard)"
        self.is_optional = False
        self._folder = folder
        self._search_after_s, self._search_pause_s = 0.0, FIRST_SEARCH_PAUSE_S
        self._writer: Any = None
        self._files = 0

    def find_place(self, snapshot: Snapshot) -> str:
        """Return the folder."""
        _load_writer()  # at once: what is not installed is said before the training has begun
        if self._folder != AUTO:
            return self._folder
        if snapshot.run.elapsed_s < self._search_after_s:
            return ""
        script_folder = find_event_folder(snapshot)
        if script_folder is None:
            # The search walks through folders, perhaps of a network disk that the training reads.
            self._search_after_s = snapshot.run.elapsed_s + self._search_pause_s
            self._search_pause_s = min(2 * self._search_pause_s, LAST_SEARCH_PAUSE_S)
            return ""
        self._folder = str(script_folder / SUBFOLDER)
        return self._folder

    def why_no_place(self) -> str:
        """Return that no rank has logged, and what to do."""
        return (
            "no event file of a rank was found in its working directory, nor in a folder that its command "
            "names; give the folder: --tensorboard DIR"
        )

    def write(self, records: Sequence[Record]) -> None:
        """Append the records. After an error the next ones go to a new file, as this one may end in half a
        record; TensorBoard reads the files of a folder one after another."""
        summary = _load_writer()
        try:
            if self._writer is None:
                self._writer = self._open_file()
            for record in records:
                if isinstance(record, ScalarPoint):
                    for name, value in record.values.items():
                        self._append(record, summary.scalar(name, value))
                else:
                    self._append(record, summary.text(FINDINGS, record.text))
            self._writer.flush()
        except OSError:
            self._abandon()
            raise

    def close(self, snapshot: Snapshot) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.flush()
            self._writer.close()

    def _open_file(self) -> Any:
        from tensorboardX import RecordWriter
        from tensorboardX.proto.event_pb2 import Event

        if "://" not in self._folder:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
        self._files += 1
        # As TensorFlow names them; runs that begin in the same second have other pids.
        name = f"events.out.tfevents.{time.time():.0f}.{os.uname().nodename}.{os.getpid()}.{self._files}"
        writer = RecordWriter(f"{self._folder}/{name}")
        header = Event(wall_time=time.time(), file_version="brain.Event:2")
        writer.write(header.SerializeToString())
        return writer

    def _append(self, record: Record, summary: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        event = Event(step=record.step, wall_time=record.unix_s, summary=summary)
        self._writer.write(event.SerializeToString())

    def _abandon(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.close()


def _load_writer() -> Any:
    try:
        from tensorboardX import summary
    except ImportError as error:
        raise MissingTrackerError(
            f"tensorboardX cannot be imported ({error}): pip install 'allaboard[tensorboard]'"
        ) from None
    return summary
