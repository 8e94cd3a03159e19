"""Whatever call of the system fails in the agent of one host, all hosts of the job train on, or end with a
message that says why, within the bound of the roll call; nothing is left behind.

Here a few places of the meeting and of the choice of the next leader; ``--long`` takes all.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from failing_call_runs import FailingCall
from failing_host_runs import JOBS, host_violations, run_hosts

MEETS, LOSES_LEADER = JOBS
LISTENER = "cluster/transport/listener.py"
NOT_SERVED = FailingCall(f"socket.accept {LISTENER}:_accept_callers", 0, True)
SAMPLE = [
    (0, NOT_SERVED),
    (0, FailingCall("select.epoll cluster/transport/epoll_poller.py:add_socket")),
    (1, FailingCall("thread cluster/leader_selection.py:_measure_host", 0, True)),
    (1, FailingCall("socket.setsockopt cluster/transport/connect_probe.py:connect_and_greet")),
    (1, FailingCall("socket.send cluster/transport/client_handshake.py:shake_hands")),
]
"""Rank whose agent meets the failure, and which."""
SUCCESSION_SAMPLE = [(1, FailingCall(f"socket.accept {LISTENER}:_accept_callers", 1, True))]
MUST_SAY = {NOT_SERVED: r"callers at port \d+ cannot be served: Too many open files"}
"""What the host must say besides, as the others can only see that it does not answer."""
SIDE_BY_SIDE = 3


def broken(
    folder: Path, name: str, calls: list[tuple[int, FailingCall]], met_share: float
) -> dict[str, list[str]]:
    """Run a job once for each call; return what did not hold, by the call.

    At least ``met_share`` of the calls must have been made.
    """

    def run(number: int) -> tuple[str, list[str], bool]:
        rank, call = calls[number]
        outcomes = run_hosts(folder / f"run{number}", JOBS[name], rank, call)
        wrong = host_violations(outcomes, call)
        if call in MUST_SAY and not re.search(MUST_SAY[call], outcomes[rank].text):
            wrong.append("the host does not say what it lacks")
        shown = [outcome.text[-1500:] for outcome in outcomes] if wrong else []
        return f"rank {rank}: {call}", wrong + shown, outcomes[0].has_failed

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        results = list(pool.map(run, range(len(calls))))
    unmet = [call for call, _, has_failed in results if not has_failed]
    assert len(unmet) <= (1 - met_share) * len(calls), unmet
    return {call: wrong for call, wrong, _ in results if wrong}


def test_all_hosts_train_on_or_end_with_a_reason(tmp_path: Path) -> None:
    assert broken(tmp_path, MEETS, SAMPLE, 1.0) == {}


def test_the_next_leader_comes_although_a_call_fails(tmp_path: Path) -> None:
    assert broken(tmp_path, LOSES_LEADER, SUCCESSION_SAMPLE, 1.0) == {}


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("name", "ranks"), [(MEETS, (0, 1)), (LOSES_LEADER, (1, 2))])
def test_every_call_of_a_meeting(name: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    calls = []
    for rank in ranks:
        outcomes = run_hosts(tmp_path / f"plain{rank}", JOBS[name], rank, FailingCall(""))
        assert host_violations(outcomes, FailingCall("")) == []
        # What an agent does without other hosts is tried with one host.
        places = [place for place in outcomes[0].places if " cluster/" in place]
        calls += [
            (rank, FailingCall(place, skip, lasts))
            for place in places
            for skip, lasts in ((0, False), (0, True), (2, True))
        ]
    assert broken(tmp_path, name, calls, 0.4) == {}
