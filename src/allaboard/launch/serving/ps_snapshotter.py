"""Keeps the newest values of the parameter servers' variables in memory, as a checkpoint that a TensorFlow 1
Saver can restore. It reads every server through a session of its own, by the variables' names. It runs in
the user's Python, where allaboard need not be installed.

Called with the folder, and the seconds between two snapshots. Each line that it prints is JSON for the agent:
a snapshot that was taken, or a trouble.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

LISTING_FILE, NEWEST_FILE = "variables.json", "snapshot.json"
LISTING_POLL_S = 0.2
"""Seconds between two looks whether the chief has told its variables."""
ANSWER_TIMEOUT_S = 20.0
"""Seconds without an answer after which a server is given up until the next time."""
MAX_STEP_BYTES = 1 << 26
"""Bytes that are asked of a server in one step: few enough for a slow way in `ANSWER_TIMEOUT_S`."""
MAX_REMOTE_BYTES = (1 << 31) - (1 << 20)
"""Bytes of a variable that can be given to a server of another host: a protobuf holds less than 2 GiB."""
LOCAL_PREFIXES = ("127.", "localhost:", "[::1]:")
SERVER_TIMEOUT_SLACK_S = 1.0
"""Seconds that a server's own word about the time gets to arrive."""
MIN_FREE_BYTES = 1 << 25
"""Bytes that a snapshot leaves free in memory."""
REPORT_TROUBLE_AFTER_S = 30.0
"""Seconds without a snapshot before it is told: a server that comes back is empty for a while."""
NO_LISTING = (
    "the chief tells no variables; it does where MonitoredTrainingSession makes its session"
)

Variable = dict[str, Any]


class Piece(NamedTuple):
    """A part of a variable that is read in one step."""

    variable: int
    """Index of the variable in its server's list."""
    first_element: int
    """First element of the part, in the flattened variable."""
    size: int
    """Number of elements; -1 for the whole variable."""


def read_batches(sizes: list[int], widths: list[int], max_bytes: int) -> list[list[Piece]]:
    """Return what to ask for in one step each: variables of these sizes and element widths in
    bytes, at most ``max_bytes`` together. A larger variable comes in pieces."""
    batches_of_pieces: list[list[Piece]] = []
    filled = 0
    for variable, (size, width) in enumerate(zip(sizes, widths)):  # noqa: B905 - Python 3.9
        step = max(1, max_bytes // width) if size > max_bytes else 0
        count = size // width
        pieces = [
            Piece(variable, n, min(step, count - n)) for n in range(0, count, step or count + 1)
        ]
        for piece in pieces if step else [Piece(variable, 0, -1)]:
            part = piece.size * width if step else size
            if not batches_of_pieces or filled + part > max_bytes:
                batches_of_pieces.append([])
                filled = 0
            batches_of_pieces[-1].append(piece)
            filled += part
    return batches_of_pieces


class ServerReader:
    """One server: a graph of its variables alone, and a session with it, made anew after each
    failure."""

    def __init__(self, tf: Any, address: str, task: str, variables: list[Variable]) -> None:
        self._tf = tf
        self._target = "grpc://" + address
        job, _, index = task.partition(":")
        self._only = f"/job:{job}/task:{index}"
        self._variables = variables
        self._session: Any = None
        self._abandoned_sessions: list[Any] = []
        """Sessions are not closed: a close waits for a dead server without a bound."""
        self._graph = tf.Graph()
        with self._graph.as_default():
            whole = [self._tensor(v) for v in variables]
            widths = [tf.dtypes.as_dtype(v["dtype"]).size or 1 for v in variables]
            sizes = [_elements(v) * width for v, width in zip(variables, widths)]  # noqa: B905
            self._steps = [
                (batch, [self._piece(whole[p.variable], p) for p in batch])
                for batch in read_batches(sizes, widths, MAX_STEP_BYTES)
            ]
        self.values: list[tuple[Variable, Any]] | None = None
        self.error = ""
        self.answered = 0.0
        """When it last gave a part of what it was asked for (s)."""

    def _tensor(self, v: Variable) -> Any:
        tf, raw = self._tf, self._tf.raw_ops
        attributes = {k: v[k] for k in ("container", "shape")}
        attributes.update(dtype=tf.dtypes.as_dtype(v["dtype"]), shared_name=v["shared"])
        with tf.device(v["device"]):
            if v["kind"] == "VarHandleOp":
                return raw.ReadVariableOp(
                    resource=raw.VarHandleOp(**attributes), dtype=attributes["dtype"]
                )
            operation = raw.VariableV2 if v["kind"] == "VariableV2" else raw.Variable
            return raw.Identity(input=operation(**attributes))

    def _piece(self, whole: Any, piece: Piece) -> Any:
        if piece.size < 0:
            return whole
        raw = self._tf.raw_ops
        with self._tf.device(whole.device):
            flat = raw.Reshape(tensor=whole, shape=[-1])
            first_element, count = (
                [self._tf.constant(n, "int64")] for n in (piece.first_element, piece.size)
            )
            return raw.Slice(input=flat, begin=first_element, size=count)

    def read(self) -> None:
        """Set ``values``, or ``error``."""
        tf = self._tf.compat.v1
        session = self._session
        try:
            if session is None:
                config = tf.ConfigProto(
                    device_filters=[self._only],
                    operation_timeout_in_ms=int(ANSWER_TIMEOUT_S * 1000),
                )
                session = tf.Session(self._target, graph=self._graph, config=config)
                self._session = session
            options = tf.RunOptions(timeout_in_ms=int(ANSWER_TIMEOUT_S * 1000))
            parts_by_variable: dict[int, list[Any]] = {}
            for batch, tensors in self._steps:
                values = session.run(tensors, options=options)
                for piece, value in zip(batch, values):  # noqa: B905
                    parts_by_variable.setdefault(piece.variable, []).append(value)
                self.answered = time.monotonic()
            whole = [
                (v, _joined(v, parts_by_variable.pop(at))) for at, v in enumerate(self._variables)
            ]
            if session is self._session:  # else it was given up meanwhile
                self.values = whole
        except Exception as error:
            if session is self._session:
                self.error = _one_line(error)
                self.renew()

    def renew(self) -> None:
        """Begin the next read with a new session."""
        if self._session is not None:
            self._abandoned_sessions.append(self._session)
            self._session = None


class AnswersInParts(Protocol):
    """Anything that answers in parts, and notes when the last part came."""

    answered: float


def await_answers(
    thread: threading.Thread, reader: AnswersInParts, patience: float = ANSWER_TIMEOUT_S
) -> None:
    """Return when the thread has ended, or nothing has come for longer than it may take (s). Large
    variables over a slow link take minutes in all."""
    while thread.is_alive():
        seconds_left = reader.answered + patience + SERVER_TIMEOUT_SLACK_S - time.monotonic()
        if seconds_left <= 0:
            return
        thread.join(seconds_left)


def _elements(v: Variable) -> int:
    count = 1
    for side in v["shape"] or ():
        count *= side or 1
    return int(count)


def _joined(v: Variable, parts: list[Any]) -> Any:
    """Return the variable from its pieces."""
    if len(parts) == 1:
        return parts[0]
    return importlib.import_module("numpy").concatenate(parts).reshape(v["shape"])


def snapshot_hindrance(listing: dict[str, Any]) -> str:
    """Return why the listed variables cannot be kept, or not be given back; "" if they can."""
    if listing["unread"]:
        return f"not only variables are to be kept: {', '.join(listing['unread'][:4])}"
    if all(address.startswith(LOCAL_PREFIXES) for address in listing["cluster"].values()):
        return ""  # each server reads the file itself
    large = [
        v["name"]
        for v in listing["variables"]
        if _elements(v) * v.get("width", 1) > MAX_REMOTE_BYTES
    ]
    if not large:
        return ""
    return (
        f"{', '.join(large[:4])}: more than 2 GiB, which a server of another host cannot be given "
        "at once; divide it (partitioner=)"
    )


class SnapshotKeeper:
    """Keeps the newest snapshot. ``folder`` is in memory, and emptied by the agent at the end."""

    def __init__(self, tf: Any, folder: Path, listing: dict[str, Any], number: int) -> None:
        self._tf = tf
        self._folder = folder
        self._step = listing["step"]
        self.number = number
        self._last_success_at = time.monotonic()
        self._trouble_reported = False
        self._hindrance = snapshot_hindrance(listing)
        tasks = sorted({v["task"] for v in listing["variables"]})
        self._readers = {
            t: ServerReader(
                tf, listing["cluster"][t], t, [v for v in listing["variables"] if v["task"] == t]
            )
            for t in tasks
        }

    def take_snapshot(self) -> None:
        """Take one snapshot. Trouble is reported when it has lasted for a while."""
        trouble = self._try_snapshot()
        if not trouble:
            self._last_success_at, self._trouble_reported = time.monotonic(), False
        elif not self._trouble_reported and (
            self._hindrance or time.monotonic() - self._last_success_at >= REPORT_TROUBLE_AFTER_S
        ):
            self._trouble_reported = True
            print_event(trouble=trouble)

    def _try_snapshot(self) -> str:
        if self._hindrance:
            return self._hindrance
        began_at = time.monotonic()
        self._read_all()
        for task, reader in self._readers.items():
            if reader.values is None:
                return f"{task.replace(':', ' ')} could not be read: {reader.error}"
        values = [pair for r in self._readers.values() for pair in r.values or ()]
        size = sum(int(value.nbytes) for _, value in values)
        free = shutil.disk_usage(self._folder).free
        if free < size + MIN_FREE_BYTES:
            return f"{free >> 20} MB are free in memory, and a snapshot has {size >> 20} MB"
        try:
            prefix = self._write(values)
        except Exception as error:
            return _one_line(error)
        step = next((int(value) for v, value in values if v["name"] == self._step), 0)
        snapshot = {"number": self.number, "step": step, "at": began_at, "prefix": prefix}
        self._publish(snapshot)
        print_event(
            number=self.number,
            step=step,
            taken_at=began_at,
            seconds=round(time.monotonic() - began_at, 4),
            bytes=size,
            variables=len(values),
        )
        for reader in self._readers.values():
            reader.values = None
        return ""

    def _read_all(self) -> None:
        """Read all servers at the same time; one that does not answer holds up no other."""
        threads = {}
        for task, reader in self._readers.items():
            reader.values, reader.error = None, f"no answer for {ANSWER_TIMEOUT_S:g} s"
            reader.answered = time.monotonic()
            threads[task] = threading.Thread(target=reader.read, daemon=True)
            threads[task].start()
        for task, thread in threads.items():
            await_answers(thread, self._readers[task])
            if thread.is_alive():
                self._readers[task].renew()

    def _write(self, values: list[tuple[Variable, Any]]) -> str:
        self.number += 1
        prefix = str(self._folder / f"snapshot-{self.number}")
        names = [v["name"] for v, _ in values]
        slices = [v["slice"] for v, _ in values]
        tensors = [self._tf.constant(value) for _, value in values]
        self._tf.raw_ops.SaveV2(
            prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=tensors
        )
        return prefix

    def _publish(self, snapshot: dict[str, Any]) -> None:
        """Make this snapshot the newest, and remove the one before."""
        new = self._folder / (NEWEST_FILE + ".new")
        new.write_text(json.dumps(snapshot))
        # Whole or not at all: the chief may read it at any moment.
        new.replace(self._folder / NEWEST_FILE)
        for file in self._folder.glob("snapshot-*"):
            if not file.name.startswith(f"snapshot-{snapshot['number']}."):
                # A chief that is reading these just now takes the newer one at its second try.
                file.unlink()


def _one_line(error: Exception) -> str:
    """Return the error in one line. TensorFlow prints the node and the stack that made it first,
    and the cause after them."""
    text = str(error)
    cause = text.partition("\nNode: ")[2].partition("\n")[2] or text
    return f"{type(error).__name__}: {cause.strip().partition(chr(10))[0][:200]}"


def print_event(**told: object) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def main() -> None:
    folder, period = Path(sys.argv[1]), float(sys.argv[2])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Not needed here, and a third of TensorFlow's start where they are installed.
    sys.modules.update({"jax": None, "sklearn": None})  # type: ignore[dict-item]
    tf = importlib.import_module("tensorflow")
    path = folder / LISTING_FILE
    last_mtime, number, snapshot_due = 0, 0, 0.0
    keeper: SnapshotKeeper | None = None
    listing_due: float | None = time.monotonic() + REPORT_TROUBLE_AFTER_S
    while True:
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            changed = 0
        if changed and changed != last_mtime:
            last_mtime = changed
            number = keeper.number if keeper is not None else 0
            keeper = SnapshotKeeper(tf, folder, json.loads(path.read_text()), number)
        now = time.monotonic()
        if keeper is None and listing_due is not None and now >= listing_due:
            listing_due = None
            print_event(trouble=NO_LISTING)
        if keeper is not None and now >= snapshot_due:
            keeper.take_snapshot()
            snapshot_due = max(now + period, time.monotonic())
        time.sleep(
            max(0.01, min(LISTING_POLL_S, snapshot_due - time.monotonic()))
            if keeper
            else LISTING_POLL_S
        )


if __name__ == "__main__":
    main()
