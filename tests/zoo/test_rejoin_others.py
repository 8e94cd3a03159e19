"""Jobs on several hosts that are started again, other than two hosts of PyTorch: JAX, TensorFlow 2's
parameter servers, three hosts, several agents a host, a worker that is stopped, agents that meet in etcd."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bedded import need
from hosted import Hosted
from testbed import Bed, etcd

JOBS = Path(__file__).parents[2] / "src/allaboard/drills/jobs"
RESTART = ("--on-failure", "restart")
JAX = (str(JOBS / "jax_psum.py"), "--steps", "400")
ETCD = (*RESTART, "--coordinator", "etcd://h2:2379/job")


class Case(NamedTuple):
    """A job of PyTorch unless it says otherwise, and who of it is hurt, and how."""

    framework: str = "torch"
    words: tuple[str, ...] = ()
    hosts: int = 2
    each: int = 1
    hurt: int = 1
    number: signal.Signals = signal.SIGKILL
    options: tuple[str, ...] = RESTART
    arrange: Callable[[Bed], object] = lambda bed: None
    needs: Sequence[str] = ()


STOPPED = (*RESTART, "--stopped-after", "2")
CASES = {
    "a process of JAX": Case("jax", JAX),
    "the first process of JAX": Case("jax", JAX, hurt=0),
    "a process of JAX, stopped": Case("jax", JAX, number=signal.SIGSTOP, options=STOPPED),
    "a worker of another host, stopped": Case(number=signal.SIGSTOP, options=STOPPED),
    "the last of three hosts": Case(hosts=3, hurt=2),
    "the second of its host": Case(each=2, hurt=3),
    "agents that meet in etcd": Case(
        hosts=3, options=ETCD, arrange=lambda bed: etcd.Etcd(bed, "h2"), needs=etcd.NEEDS
    ),
}
QUICK = "a process of JAX"


@pytest.mark.zoo
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == QUICK else pytest.mark.long) for name in CASES]
)
def test_all_begin_the_next_round_together(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    need(*case.needs)
    kept = ("--steps", "150", "--checkpoint", str(tmp_path / "c"), "--pause", "0.01")
    with Bed(case.hosts, lifetime=280) as bed:
        kept_up = case.arrange(bed)
        words = case.words or ("examples/torch_checkpoint.py", *kept)
        job = Hosted(bed, case.framework, words, case.options, each=case.each)
        job.wait_for_steps(101)
        job.hurt(case.hurt, case.number)
        for index, (code, report) in enumerate(job.end()):
            assert (code, report["outcome"], report["restarts"]) == (0, "completed", 1), index
            first, _ = report["rounds"]
            said = "was killed by SIGKILL"
            if case.number == signal.SIGSTOP:
                said = r"has been stopped for \d s \(--stopped-after 2\)"
            assert re.fullmatch(rf"worker {case.hurt} {said}; restart 1 of 3", first["decision"]), (
                first
            )
        said = "trained 400 steps" if case.framework == "jax" else "going on after step 100"
        assert said in job.text(0)
        del kept_up


ROLES = ("chief", "worker", "ps")


def served(tmp_path: Path, hurt: int) -> tuple[str, list[dict[str, Any]]]:
    """A job of ParameterServerStrategy, one task of which is killed: what the chief says, and the reports."""
    need()
    words = ("examples/tf_ps_digits.py", "--epochs", "14", "--pause", "0.2", "--checkpoints")
    with Bed(3, lifetime=280) as bed:
        job = Hosted(bed, "tensorflow", (*words, str(tmp_path / "c")), RESTART, roles=ROLES)
        job.wait_for(r"step +150 ")
        job.hurt(hurt)
        told = job.end()
        assert [code for code, _ in told] == [0, 0, 0], job.text(0)[-3000:]
        return job.text(0), [report for _, report in told]


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(300)
@pytest.mark.parametrize("hurt", [0, 2])
def test_the_chief_and_the_server_of_tensorflow_2_begin_anew_with_all(
    tmp_path: Path, hurt: int
) -> None:
    text, reports = served(tmp_path, hurt)
    for report in reports:
        assert (report["restarts"], report["returns"]) == (1, [])
        decision = report["rounds"][0]["decision"]
        assert decision == f"{ROLES[hurt]} 0 was killed by SIGKILL; restart 1 of 3"
    found = re.search(r"goes on after step (\d+)", text)
    assert found is not None and int(found[1]) >= 100


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(300)
def test_a_worker_of_tensorflow_2_comes_back_alone(tmp_path: Path) -> None:
    text, reports = served(tmp_path, 1)
    for report in reports:
        assert (report["restarts"], [r["task"] for r in report["returns"]]) == (0, ["worker-0"])
    assert "goes on" not in text and "test accuracy" in text
