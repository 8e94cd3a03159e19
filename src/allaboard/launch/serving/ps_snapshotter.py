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

LISTED, NEWEST = "variables.json", "snapshot.json"
LOOK = 0.2
"""Seconds between two looks whether the chief has told its variables."""
PATIENCE = 20.0
"""Seconds without an answer after which a server is given up until the next time."""
AT_ONCE = 1 << 26
"""Bytes that are asked of a server in one step: few enough for a slow way in `PATIENCE`."""
FED = (1 << 31) - (1 << 20)
"""Bytes of a variable that can be given to a server of another host: a protobuf holds less than 2 GiB."""
LOCAL = ("127.", "localhost:", "[::1]:")
SPARE = 1.0
"""Seconds that a server's own word about the time gets to arrive."""
ROOM = 1 << 25
"""Bytes that a snapshot leaves free in memory."""
TOLD = 30.0
"""Seconds without a snapshot before it is told: a server that comes back is empty for a while."""
UNTOLD = "the chief tells no variables; it does where MonitoredTrainingSession makes its session"

Variable = dict[str, Any]


class Piece(NamedTuple):
    """``size`` elements of the variable at this place of a list, from ``first`` on; all of it where that is
    -1."""

    variable: int
    first: int
    size: int


def batches(sizes: list[int], widths: list[int], most: int) -> list[list[Piece]]:
    """What is asked for in one step each: variables of so many bytes and bytes an element, at most ``most``
    together; one that is larger comes in pieces."""
    found: list[list[Piece]] = []
    filled = 0
    for at, (size, width) in enumerate(zip(sizes, widths)):  # noqa: B905 - Python 3.9
        step = max(1, most // width) if size > most else 0
        count = size // width
        pieces = [Piece(at, n, min(step, count - n)) for n in range(0, count, step or count + 1)]
        for piece in pieces if step else [Piece(at, 0, -1)]:
            part = piece.size * width if step else size
            if not found or filled + part > most:
                found.append([])
                filled = 0
            found[-1].append(piece)
            filled += part
    return found


class Reader:
    """One server: a graph of its variables alone, and a session with it, made anew after each failure."""

    def __init__(self, tf: Any, address: str, task: str, variables: list[Variable]) -> None:
        self._tf = tf
        self._target = "grpc://" + address
        job, _, index = task.partition(":")
        self._only = f"/job:{job}/task:{index}"
        self._variables = variables
        self._session: Any = None
        self._left: list[Any] = []
        """Sessions are not closed: a close waits for a dead server without a bound."""
        self._graph = tf.Graph()
        with self._graph.as_default():
            whole = [self._tensor(v) for v in variables]
            widths = [tf.dtypes.as_dtype(v["dtype"]).size or 1 for v in variables]
            sizes = [_elements(v) * width for v, width in zip(variables, widths)]  # noqa: B905
            self._steps = [
                (batch, [self._piece(whole[p.variable], p) for p in batch])
                for batch in batches(sizes, widths, AT_ONCE)
            ]
        self.values: list[tuple[Variable, Any]] | None = None
        self.error = ""
        self.answered = 0.0
        """When it last gave a part of what it was asked for (s)."""

    def _tensor(self, v: Variable) -> Any:
        tf, raw = self._tf, self._tf.raw_ops
        told = {k: v[k] for k in ("container", "shape")}
        told.update(dtype=tf.dtypes.as_dtype(v["dtype"]), shared_name=v["shared"])
        with tf.device(v["device"]):
            if v["kind"] == "VarHandleOp":
                return raw.ReadVariableOp(resource=raw.VarHandleOp(**told), dtype=told["dtype"])
            made = raw.VariableV2 if v["kind"] == "VariableV2" else raw.Variable
            return raw.Identity(input=made(**told))

    def _piece(self, whole: Any, piece: Piece) -> Any:
        if piece.size < 0:
            return whole
        raw = self._tf.raw_ops
        with self._tf.device(whole.device):
            flat = raw.Reshape(tensor=whole, shape=[-1])
            first, count = ([self._tf.constant(n, "int64")] for n in (piece.first, piece.size))
            return raw.Slice(input=flat, begin=first, size=count)

    def read(self) -> None:
        """Fills in ``values``, or ``error``."""
        tf = self._tf.compat.v1
        session = self._session
        try:
            if session is None:
                config = tf.ConfigProto(
                    device_filters=[self._only], operation_timeout_in_ms=int(PATIENCE * 1000)
                )
                session = tf.Session(self._target, graph=self._graph, config=config)
                self._session = session
            options = tf.RunOptions(timeout_in_ms=int(PATIENCE * 1000))
            got: dict[int, list[Any]] = {}
            for batch, tensors in self._steps:
                values = session.run(tensors, options=options)
                for piece, value in zip(batch, values):  # noqa: B905
                    got.setdefault(piece.variable, []).append(value)
                self.answered = time.monotonic()
            whole = [(v, _joined(v, got.pop(at))) for at, v in enumerate(self._variables)]
            if session is self._session:  # else it was given up meanwhile
                self.values = whole
        except Exception as error:
            if session is self._session:
                self.error = _said(error)
                self.renew()

    def renew(self) -> None:
        """The next read begins with a new session."""
        if self._session is not None:
            self._left.append(self._session)
            self._session = None


class Answering(Protocol):
    """Who answers in parts."""

    answered: float


def await_answers(thread: threading.Thread, one: Answering, patience: float = PATIENCE) -> None:
    """Returns when the thread has ended, or nothing has come for longer than it may take (s): large variables
    over a slow way take minutes in all."""
    while thread.is_alive():
        left = one.answered + patience + SPARE - time.monotonic()
        if left <= 0:
            return
        thread.join(left)


def _elements(v: Variable) -> int:
    count = 1
    for side in v["shape"] or ():
        count *= side or 1
    return int(count)


def _joined(v: Variable, parts: list[Any]) -> Any:
    """The variable of its pieces."""
    if len(parts) == 1:
        return parts[0]
    return importlib.import_module("numpy").concatenate(parts).reshape(v["shape"])


def hindrance(told: dict[str, Any]) -> str:
    """Why what the chief tells of cannot be kept, or not be given back; "" where it can."""
    if told["unread"]:
        return f"not only variables are to be kept: {', '.join(told['unread'][:4])}"
    if all(address.startswith(LOCAL) for address in told["cluster"].values()):
        return ""  # each server reads the file itself
    large = [v["name"] for v in told["variables"] if _elements(v) * v.get("width", 1) > FED]
    if not large:
        return ""
    return (
        f"{', '.join(large[:4])}: more than 2 GiB, which a server of another host cannot be given "
        "at once; divide it (partitioner=)"
    )


class Keeper:
    """The newest snapshot; ``folder`` is in memory, and emptied by the agent at the end."""

    def __init__(self, tf: Any, folder: Path, told: dict[str, Any], number: int) -> None:
        self._tf = tf
        self._folder = folder
        self._step = told["step"]
        self.number = number
        self._good = time.monotonic()
        self._told = False
        self._hindrance = hindrance(told)
        tasks = sorted({v["task"] for v in told["variables"]})
        self._readers = {
            t: Reader(tf, told["cluster"][t], t, [v for v in told["variables"] if v["task"] == t])
            for t in tasks
        }

    def take(self) -> None:
        """One snapshot; what goes wrong is told when it has gone wrong for a while."""
        trouble = self._take()
        if not trouble:
            self._good, self._told = time.monotonic(), False
        elif not self._told and (self._hindrance or time.monotonic() - self._good >= TOLD):
            self._told = True
            say(trouble=trouble)

    def _take(self) -> str:
        if self._hindrance:
            return self._hindrance
        began = time.monotonic()
        self._read()
        for task, reader in self._readers.items():
            if reader.values is None:
                return f"{task.replace(':', ' ')} could not be read: {reader.error}"
        values = [pair for r in self._readers.values() for pair in r.values or ()]
        size = sum(int(value.nbytes) for _, value in values)
        free = shutil.disk_usage(self._folder).free
        if free < size + ROOM:
            return f"{free >> 20} MB are free in memory, and a snapshot has {size >> 20} MB"
        try:
            prefix = self._write(values)
        except Exception as error:
            return _said(error)
        step = next((int(value) for v, value in values if v["name"] == self._step), 0)
        told = {"number": self.number, "step": step, "at": began, "prefix": prefix}
        self._point(told)
        say(
            number=self.number,
            step=step,
            at=began,
            seconds=round(time.monotonic() - began, 4),
            bytes=size,
            variables=len(values),
        )
        for reader in self._readers.values():
            reader.values = None
        return ""

    def _read(self) -> None:
        """All servers at the same time; one that does not answer holds up nobody else."""
        threads = {}
        for task, reader in self._readers.items():
            reader.values, reader.error = None, f"no answer for {PATIENCE:g} s"
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

    def _point(self, told: dict[str, Any]) -> None:
        """From here on this one is the newest; the one before is removed."""
        new = self._folder / (NEWEST + ".new")
        new.write_text(json.dumps(told))
        new.replace(self._folder / NEWEST)
        for file in self._folder.glob("snapshot-*"):
            if not file.name.startswith(f"snapshot-{told['number']}."):
                file.unlink()


def _said(error: Exception) -> str:
    """In one line. Where TensorFlow tells the node and the stack that made it, the cause comes after them."""
    text = str(error)
    cause = text.partition("\nNode: ")[2].partition("\n")[2] or text
    return f"{type(error).__name__}: {cause.strip().partition(chr(10))[0][:200]}"


def say(**told: object) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def main() -> None:
    folder, period = Path(sys.argv[1]), float(sys.argv[2])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tf = importlib.import_module("tensorflow")
    path = folder / LISTED
    known, number, due = 0, 0, 0.0
    keeper: Keeper | None = None
    awaited: float | None = time.monotonic() + TOLD
    while True:
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            changed = 0
        if changed and changed != known:
            known = changed
            number = keeper.number if keeper is not None else 0
            keeper = Keeper(tf, folder, json.loads(path.read_text()), number)
        now = time.monotonic()
        if keeper is None and awaited is not None and now >= awaited:
            awaited = None
            say(trouble=UNTOLD)
        if keeper is not None and now >= due:
            keeper.take()
            due = max(now + period, time.monotonic())
        time.sleep(max(0.01, min(LOOK, due - time.monotonic())) if keeper else LOOK)


if __name__ == "__main__":
    main()
