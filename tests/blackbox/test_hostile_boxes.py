"""Black boxes that are torn, of another version, or written by somebody who means ill: no look fails."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allaboard.blackbox.reader import OpenBox
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.facts import BOX, JobView
from allaboard.probe import layout
from allaboard.protocol.events import ProcessSampled
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import run_rules

PID = 4242


def box(folder: Path, data: bytes) -> Path:
    path = folder / f"{PID}.box"
    path.write_bytes(data)
    return path


def good() -> bytearray:
    """An empty box with the head that the probe writes."""
    data = bytearray(layout.SIZE)
    layout.HEADER.pack_into(data, 0, layout.MAGIC, layout.VERSION, PID, 1, 0.0, 0, 0, -1)
    return data


def looked_at(path: Path) -> None:
    """All that is done with a box: read, judged by every rule, and encoded."""
    opened = OpenBox(path)
    record = ProcessRecord(PID, 0, "h", 0.0, 0)
    for at in (1.0, 2.0):
        record.add_sample(
            ProcessSampled(
                pid=PID, worker=0, sampled_at=at, state="S", cpu=0.1, box=opened.read_snapshot()
            )
        )
    member = record.to_member(False)
    other = ProcessRecord(PID + 1, 1, "h", 0.0, 1).to_member(False)
    view = JobView(now=100.0, launched=2, members=(member, other), progress_at=0.0)
    for entry, claim in run_rules(view, load_catalogue().entries):
        assert "itself failed" not in claim.summary, (entry.code, claim.summary)
    msgspec.json.encode(view)
    opened.map.close()


@pytest.mark.parametrize("size", [0, 1, 100, layout.SIZE - 1, layout.SIZE + 1])
def test_a_box_of_another_size_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(ValueError):
        OpenBox(box(tmp_path, os.urandom(size)))


def test_another_version_is_refused(tmp_path: Path) -> None:
    data = good()
    fields = list(layout.HEADER.unpack_from(data, 0))
    fields[1] += 1
    layout.HEADER.pack_into(data, 0, *fields)
    with pytest.raises(ValueError, match=f"of version {layout.VERSION + 1}, not {layout.VERSION}"):
        OpenBox(box(tmp_path, bytes(data)))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 400))
def test_random_bytes_behind_a_good_head(
    tmp_path_factory: pytest.TempPathFactory, seed: int, spots: int
) -> None:
    chance = Random(seed)
    folder = tmp_path_factory.mktemp("boxes")
    data = good()
    head = layout.HEADER.size
    if (
        spots % 3 == 1
    ):  # all but what makes it a box: the clock, the main thread, the signal, the file
        born = chance.choice([float("nan"), float("-inf"), 1e300, -7.0, chance.random() * 1e9])
        rest = chance.getrandbits(64), chance.getrandbits(32), chance.getrandbits(31)
        layout.HEADER.pack_into(data, 0, layout.MAGIC, layout.VERSION, PID, 1, born, *rest)
    if spots == 0:
        data[head:] = chance.randbytes(len(data) - head)
    values = (b"\xff" * 8, b"\0" * 8, struct.pack("<d", float("nan")), struct.pack("<d", float("inf")),
              struct.pack("<q", -1), struct.pack("<q", 2**62), b'{"worker":', b"\x80" * 8)  # fmt: skip
    for _ in range(spots):
        at = chance.randrange(head, len(data) - 10)
        value = chance.choice(values) if chance.random() < 0.5 else chance.randbytes(8)
        data[at : at + len(value)] = value
    path = box(folder, bytes(data))
    looked_at(path)
    path.unlink()


def _overwrite(path: Path, data: bytes | bytearray) -> None:
    """Write into the file that is open, as its owner does."""
    with path.open("r+b") as file:
        file.write(data)


@pytest.mark.parametrize("name", ["identity", "declared", "raised"])
def test_a_garbled_text_is_said(tmp_path: Path, name: str) -> None:
    data = good()
    layout.write_text(data, name, '{"rank": "torn in the mid')
    opened = OpenBox(path := box(tmp_path, bytes(data)))
    assert opened.read_snapshot().notes == {BOX: f"its black box is garbled: {name}"}
    layout.write_text(data, name, "")
    _overwrite(path, data)
    assert opened.read_snapshot().notes == {}


def test_a_text_torn_in_the_middle_of_its_writing_is_not_taken(tmp_path: Path) -> None:
    """Its writer was killed there: what was whole before stays, and there is nothing to complain of."""
    data = good()
    layout.write_text(data, "identity", '{"worker": 3, "notes": {"torch": "2.13"}}')
    opened = OpenBox(path := box(tmp_path, bytes(data)))
    assert opened.read_snapshot().notes == {"torch": "2.13"}
    offset, _ = layout.TEXTS["identity"]
    lock, length = layout.TEXT.unpack_from(data, offset)
    layout.TEXT.pack_into(data, offset, lock + 1, length)
    data[offset + 8 : offset + 20] = b"half of what"
    _overwrite(path, data)
    assert opened.read_snapshot().notes == {"torch": "2.13"}
    late = OpenBox(tmp_path / f"{PID}.box")
    assert late.read_snapshot().notes == {}


def test_records_torn_in_the_middle_are_read_in_no_time(tmp_path: Path) -> None:
    """No reader waits for a writer that will never come back."""
    data = good()
    for at, kind in ((layout.STATE_AT, layout.STATE), (layout.STEP_AT, layout.STEP)):
        values = [1] * len(kind.unpack_from(data, at))
        kind.pack_into(data, at, *[7, *values[1:-1], 6])
    opened = OpenBox(box(tmp_path, bytes(data)))
    began = time.perf_counter()
    for _ in range(100):
        opened.read_snapshot()
    assert time.perf_counter() - began < 5.0


TEXTS = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        [
            "[" * 5000,
            '{"worker": "x"}',
            '{"worker": 99999999999999999999}',
            '{"framework":"torch","call":"c","rank":-7,"world_size":1000000000,"place":"\\u001b[2J"}',
            '{"framework":"torch","call":"c","rank":0,"world_size":2,"cluster":{"a":"b"}}',
            '{"type":"E","message":"' + "x" * 3000 + '","at":1e400,"frames":[]}',
            '{"type":"E","message":"m","at":1.0,"frames":[["f",-5,"g"]]}',
            '{"notes":{"hook x":"\\u0000"}}',
        ]
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(layout.TEXTS)), TEXTS), st.integers(0, 255))
def test_any_texts_in_a_box(
    tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str], phase: int
) -> None:
    folder = tmp_path_factory.mktemp("boxes")
    data = good()
    layout.STATE.pack_into(data, layout.STATE_AT, 2, phase, 1.0, 1, 2)
    for name, text in texts.items():
        layout.write_text(data, name, text)
    path = box(folder, bytes(data))
    looked_at(path)
    path.unlink()


def _cut_after(opened: OpenBox, path: Path, size: int, parts: int) -> list[int]:
    """Cut the file once so many parts of it have been read; return how many are left, at any time."""
    refresh, left = opened.map.refresh, [parts]

    def refresh_after_cut(offset: int, nbytes: int) -> None:
        if left[0] == 0:
            os.truncate(path, size)
        left[0] -= 1
        refresh(offset, nbytes)

    opened.map.refresh = refresh_after_cut  # type: ignore[method-assign]
    return left


@pytest.mark.parametrize("size", [0, 100, layout.STATE_AT + 8, 4096, 100_000, layout.SIZE - 1])
def test_a_box_that_is_cut_while_it_is_read_ends_nothing(tmp_path: Path, size: int) -> None:
    """At any moment: not only between two looks."""
    data = good()
    layout.CALL.pack_into(data, layout.GROUPS_AT, 5, 1.0, 5)
    layout.GROUP.pack_into(data, layout.GROUPS_AT + layout.ABOUT_AT, 1, 2, 0, b"default")
    layout.write_text(data, "identity", '{"worker": 3}')
    path = box(tmp_path, bytes(data))
    parts = 0
    while True:
        _overwrite(path, data)
        opened = OpenBox(path)
        left = _cut_after(opened, path, size, parts)
        try:
            opened.read_snapshot()
        except ValueError as error:
            assert "was cut to" in str(error)
        opened.write_heartbeat(1.0, 1)
        opened.write_verdict("x")
        opened.trace_calls("default", 1)
        assert isinstance(opened.state, bytes) and opened.phase >= 0
        opened.map.close()
        if left[0] >= 0:
            break  # it read less often than that: every moment has had its turn
        parts += 1
    assert parts > 10


HOSTILE = """import os, random, sys, time
folder = os.environ["ALLABOARD_BOX"]
own = os.path.join(folder, "%d.box" % os.getpid())
chance = random.Random(int(os.environ["RANK"]))
deadline = time.monotonic() + 20
while not os.path.exists(own) and time.monotonic() < deadline:
    time.sleep(0.01)
os.mkdir(os.path.join(folder, "77777.box")) if os.environ["RANK"] == "0" else None
for name in ("88888.box", "x.box", "99999999999.box", own + "x"):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(os.urandom(chance.choice([0, 100, os.path.getsize(own)])))
for _ in range(30):
    with open(own, "r+b") as file:
        size = os.path.getsize(own)
        for _ in range(50):
            file.seek(chance.randrange(64, size - 8))
            file.write(os.urandom(8))
    time.sleep(0.02)
if os.environ["RANK"] == "1":
    os.truncate(own, 4096)
    time.sleep(1)
print("trained", flush=True)
"""


def test_a_worker_that_spoils_its_own_box_trains_on(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HOSTILE)
    command = [
        sys.executable,
        "-m",
        "allaboard",
        "run",
        "-n",
        "2",
        "--run-dir",
        str(tmp_path / "r"),
    ]
    done = subprocess.run(
        [*command, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained") == 2
    assert "Traceback" not in done.stderr and "itself failed" not in done.stderr
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert any("of worker 1: its black box " in line for line in report["unseen"])
    assert "4096 bytes" in done.stderr
