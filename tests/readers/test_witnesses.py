"""What others leave behind: every known message, and whole recordings of real runs."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allaboard.analysis.log_messages import KnownMessage, find_known_messages, merge_heard
from allaboard.contracts import LogReader
from allaboard.diagnosis import platforms, readers
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.diagnosis.readers.gloo_log import FALLBACK
from allaboard.diagnosis.readers.job_start_log import READER as START_READER
from allaboard.diagnosis.readers.job_start_log import START_LINES, StartLine
from allaboard.diagnosis.readers.tensorflow_log import STRAGGLERS
from allaboard.facts import Exhibit
from allaboard.plugins import Plugin, plugins
from allaboard.rules.engine.catalogue import load_catalogue

SAMPLES = Path(__file__).parent / "samples"
LOADED = [
    p
    for room in (readers, platforms)
    for p in plugins(room, "READER", LogReader)
    if isinstance(p, Plugin)
]
MESSAGES = [
    *((p.stem, m) for p in LOADED for m in getattr(p.module, "MESSAGES", ())),
    *(("gloo_log", m) for m in (FALLBACK,)),
    ("tensorflow_log", STRAGGLERS),
]


def exhibit(text: str | bytes, name: str = "a.log", rank: int = -1) -> Exhibit:
    return Exhibit(name=name, data=text.encode() if isinstance(text, str) else text, rank=rank)


@pytest.mark.parametrize("line", START_LINES, ids=lambda line: line.launcher)
def test_a_start_is_read_in_its_sample(line: StartLine) -> None:
    testimony = START_READER.read(exhibit(f"something before\n{line.sample}\nand after\n"))
    assert testimony is not None
    (start,) = testimony.starts
    assert (start.launcher, start.number, start.place.line) == (line.launcher, 0, 2)
    assert start.size >= 1 and line.source


@pytest.mark.parametrize(("witness", "message"), MESSAGES, ids=lambda v: getattr(v, "key", v))
def test_a_message_is_heard_in_its_sample(witness: str, message: KnownMessage) -> None:
    entry = load_catalogue().find_rule(message.rule)
    assert entry is not None and entry.code == message.rule, "it must mean a rule that exists"
    (heard,) = find_known_messages(
        exhibit(f"something before\n{message.sample}\nand after\n"), (message,)
    )
    assert heard.rule == message.rule and heard.speakers[0].place.line in (2, 3)
    for text in (heard.says, heard.fix, heard.proves_not):
        assert "{" not in text, "a group that was not filled in"
    others = [m for _, m in MESSAGES if m is not message and m.rule != message.rule]
    assert find_known_messages(exhibit(message.sample), others) == ()


ORDINARY = """epoch 3 step 1200 loss 0.231 clients joined the newsletter
INFO waiting for clients to connect; 2/3 clients joined
dataset says: Connection closed by peer review
Timed out waiting for the label server, trying again
NCCL INFO Connected all rings
NCCL version 2.21.5+cuda12.4
I0000 00:00:1 1 coordination_service.cc:502] Waiting for 1/3 tasks to connect.
I0000 00:00:1 1 coordination_service.cc:505] Example stragglers:
/job:worker/replica:0/task:2
I0000 00:00:1 1 coordination_service.h:529] /job:worker/replica:0/task:2 has connected to coordination
I0000 00:00:1 1 coordination_service.cc:502] Waiting for 0/3 tasks to connect.
EADDRINUSE is what our own server handles
"""


def test_ordinary_lines_and_a_healthy_start_say_nothing() -> None:
    for plugin in LOADED:
        assert isinstance(plugin.value, LogReader)
        assert plugin.value.read(exhibit(ORDINARY)) is None, plugin.stem


FOUND = [
    # recording, rule, ranks or tasks that are named
    ("torch_missing", "JOIN001", []),
    ("torch_no_master", "JOIN007", []),
    ("torch_killed", "EXIT005", [1]),
    ("torch_stopped", "LOG001", [1]),
    ("torch_exception", "EXIT002", [1]),
    ("torchrun_killed", "EXIT001", [1]),
    ("torchrun_exception", "EXIT002", [1]),
    ("torchrun_exits", "EXIT003", [2]),
    ("torchrun_port", "NET005", []),
    ("tf_missing", "JOIN001", [2]),
    ("tf_taken", "NET005", []),
    ("tf_sizes", "JOIN006", [1]),
    ("tf_killed", "EXIT005", [1]),
    ("tf_stopped", "LOG002", [0]),
    ("tf_stopped_worker", "LOG002", [1]),
    ("tf1_ps_missing", "PS003", [0]),
    ("jax_missing", "JOIN004", []),
    ("jax_twice", "JOIN005", []),
    ("jax_killed", "EXIT005", [1]),
    ("jax_barrier", "LOG001", [2]),
    ("jax_unhealthy", "LOG002", [2]),
    ("jax_leader", "EXIT005", [0]),
    ("fr_behind", "DUMP002", [1]),
    ("fr_json", "DUMP002", [1]),
    ("fr_order", "DUMP003", [1]),
    ("nccl_timeout", "LOG007", [2]),
    # On one H200, torch 2.11, NCCL 2.28.9: the recorders' traces beside the logs, cut to their ends.
    ("nccl_recorder_early", "DUMP002", [1]),
    ("nccl_recorder_other", "DUMP003", [0, 1]),
    ("nccl_recorder_shape", "DUMP003", [0, 1]),
    ("nccl_recorder_kill", "EXIT005", [1]),
    ("nccl_recorder_oom", "RES001", [1]),
]


@pytest.mark.parametrize(("sample", "rule", "named"), FOUND)
def test_a_recording_of_a_real_fault_is_read(sample: str, rule: str, named: list[int]) -> None:
    found = diagnose_paths([SAMPLES / sample], load_catalogue()).findings
    mine = [f for f in found if f.rule == rule]
    assert mine, [f.rule for f in found]
    assert [w.index for w in mine[0].who] == named
    assert all(f.evidence and f.fix for f in found)


@pytest.mark.parametrize("sample", [s for s, _, _ in FOUND if s.startswith("nccl_recorder_")])
def test_traces_and_logs_of_one_fault_give_one_finding(sample: str) -> None:
    assert len(diagnose_paths([SAMPLES / sample], load_catalogue()).findings) == 1


def test_a_rank_of_which_nothing_is_there_is_said_to_be_missing() -> None:
    found = diagnose_paths([SAMPLES / "torch_missing"], load_catalogue())
    assert found.missing and found.missing[0].startswith(
        "rank 2 of 3: there is no evidence of it here"
    )


def test_half_of_a_recording_never_fails() -> None:
    for file in sorted(p for p in SAMPLES.rglob("*") if p.is_file()):
        data = file.read_bytes()
        for part in (1, 3, 7):
            torn = exhibit(data[: len(data) * part // 8], str(file))
            for plugin in LOADED:
                assert isinstance(plugin.value, LogReader)
                plugin.value.read(torn)


@given(st.binary(max_size=300))
def test_no_witness_fails_on_any_bytes(data: bytes) -> None:
    for plugin in LOADED:
        assert isinstance(plugin.value, LogReader)
        plugin.value.read(exhibit(data))
        plugin.value.read(exhibit(b"\x80\x04" + data))
        plugin.value.read(exhibit(b"Traceback (most recent call last):\n" + data))


class Runs:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('it ran')",))


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps({"entries": [Runs()]}))
    found = diagnose_paths([tmp_path], load_catalogue())
    assert found.findings == () and "it would run code" in found.notes[0]


def test_who_waits_is_not_awaited_and_unknown_speakers_prove_nothing() -> None:
    message = next(m for _, m in MESSAGES if m.key == "Timed out waiting")
    told = [
        *find_known_messages(exhibit(message.sample, "r0.log", 0), (message,)),
        *find_known_messages(
            exhibit(message.sample.replace("rank0", "rank2"), "r2.log", 2), (message,)
        ),
    ]
    assert [h.silent for h in merge_heard(told, [0, 1, 2])] == [(1,)]
    anonymous = find_known_messages(exhibit(message.sample[9:]), (message,))
    assert [h.silent for h in merge_heard(anonymous, [0, 1])] == [()]


def test_a_traceback_that_was_caught_long_before_the_end_ended_nobody() -> None:
    caught = 'Traceback (most recent call last):\n  File "/h/a.py", line 3, in f\nKeyError: 1\n'
    for tail, ended in (("step\n" * 500, False), ("bye\n", True)):
        found = [
            p.value.read(exhibit(caught + tail))
            for p in LOADED
            if p.stem == "python_log" and isinstance(p.value, LogReader)
        ]
        assert (found[0] is not None) == ended


SLEEPER = """import sys, faulthandler, time
def pause():
    faulthandler.dump_traceback(open(sys.argv[1], "w"))
    print("up", flush=True)
    time.sleep(60)
pause()
"""


def test_real_dumps_of_py_spy_and_faulthandler(tmp_path: Path) -> None:
    script = tmp_path / "job" / "waits.py"
    script.parent.mkdir()
    script.write_text(SLEEPER)
    left = tmp_path / "left"
    left.mkdir()
    command = [sys.executable, str(script), str(left / "rank0.txt")]
    spy = [str(Path(sys.executable).with_name("py-spy")), "dump", "--nonblocking", "--pid"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            for name, options in (("rank1.txt", []), ("rank2.json", ["--json"])):
                words = [*spy, str(process.pid), *options]
                done = subprocess.run(words, capture_output=True, check=True, timeout=60)
                (left / name).write_bytes(done.stdout)
        finally:
            process.kill()
    found = diagnose_paths([left], load_catalogue())
    calls = {c.ranks: c.calls[0].rpartition("/")[2] for c in found.crowds}
    assert calls == {
        "0": "waits.py:3 in pause",
        "1": "waits.py:5 in pause",
        "2": "waits.py:5 in pause",
    } or calls == {"0": "waits.py:3 in pause", "1-2": "waits.py:5 in pause"}
    json.dumps([c.ranks for c in found.crowds])
