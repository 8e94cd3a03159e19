"""Whatever call of the system fails in the agent, the job trains on or ends with a message that says why, and
nothing of it is left behind. (SQLite's manner: each call fails once, and from some moment on.)

Here a few places, of each kind of call and of each phase of a run; ``--long`` takes all that a run makes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from failing_call_runs import JOBS, FailingCall, run_job, violations

TERMINAL = "os.write agent/output/terminal.py:_write"
SAMPLE = [
    FailingCall("os.getcwd options/run_job.py:_plan_job"),
    FailingCall("open launch/reaper.py:open_standard_streams"),
    FailingCall("os.mkdir launch/local_workers.py:_make_box_folder"),
    FailingCall("os.fork launch/reaper.py:fork_reaper"),
    FailingCall("os.listdir launch/worker_environments.py:<genexpr>"),
    FailingCall("socket.__new__ launch/port_reservation.py:_bind", 3),
    FailingCall("os.pipe launch/worker_streams.py:open_streams", 2),
    FailingCall("os.fork launch/worker_exec.py:fork_with_pipe", 1),
    FailingCall("socket.send launch/reaper.py:_tell", 1),
    FailingCall("socket.__new__ agent/event_loop.py:_try_descriptors"),
    FailingCall("thread agent/output/terminal.py:__init__"),
    FailingCall("thread agent/background_check.py:_start_reading"),
    FailingCall("open launch/private_files.py:open_to_append", 1, True),
    FailingCall("os.read agent/output/worker_output.py:_read_pipe", 1),
    FailingCall(TERMINAL, 1),
    FailingCall("os.remove feed/publisher.py:close"),
    FailingCall("os.rename launch/private_files.py:replace_file", 0, True),
]
SIDE_BY_SIDE = 3


def broken(
    folder: Path, name: str, calls: list[FailingCall], met_share: float
) -> dict[str, list[str]]:
    """Run a job once for each call; return what did not hold, by the call.

    At least ``met_share`` of the calls must have been made.
    """

    def run(number: int) -> tuple[str, list[str], bool]:
        call = calls[number]
        outcome = run_job(folder / f"run{number}", JOBS[name], call)
        wrong = violations(outcome, has_output=call.place != TERMINAL or not call.is_lasting)
        return str(call), [*wrong, outcome.text[-1500:]] if wrong else [], outcome.has_failed

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        results = list(pool.map(run, range(len(calls))))
    met = sum(has_failed for _, _, has_failed in results)
    assert met >= met_share * len(calls), [
        call for call, _, has_failed in results if not has_failed
    ]
    return {call: wrong for call, wrong, _ in results if wrong}


def test_the_job_trains_on_or_ends_with_a_reason(tmp_path: Path) -> None:
    assert broken(tmp_path, "ends well", SAMPLE, 1.0) == {}


def test_without_a_failing_call_all_is_well(tmp_path: Path) -> None:
    outcome = run_job(tmp_path / "run", JOBS["ends well"], FailingCall(""))
    assert violations(outcome) == [] and (outcome.code, outcome.done) == (0, 2)
    assert len(outcome.places) > 100 and not outcome.has_failed
    # Else the sample tries nothing.
    assert {call.place for call in SAMPLE} <= set(outcome.places)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", JOBS)
def test_every_call_that_a_run_makes(name: str, tmp_path: Path) -> None:
    known: set[str] = set()
    if name != next(iter(JOBS)):
        known = set(run_job(tmp_path / "first", next(iter(JOBS.values())), FailingCall("")).places)
    places = [
        p for p in run_job(tmp_path / "plain", JOBS[name], FailingCall("")).places if p not in known
    ]
    once_and_for_ever = [
        FailingCall(place, 0, lasts) for place in places for lasts in (False, True)
    ]
    assert broken(tmp_path / "first calls", name, once_and_for_ever, 0.5) == {}
    later = [FailingCall(place, 2, True) for place in places]
    assert broken(tmp_path / "later calls", name, later, 0.0) == {}  # most are made once or twice
