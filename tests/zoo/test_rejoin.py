"""Jobs that are joined on several hosts and started again on all of them: real frameworks, real kills, a
network namespace each host."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from bedded import need
from hosted import Hosted
from hurt import Run
from testbed import Bed, etcd

LONG = pytest.mark.long
HERE = Path(__file__).parent / "jobs"
VALUES = r"step (\d+) values (\d+) (\d+) (\d+) (\d+) (\d+)"
JOBS = Path(__file__).parents[2] / "src/allaboard/drills/jobs"
LOSS = r"after step \d+: loss ([0-9.]+)"


def loss(text: str) -> str:
    found = re.search(LOSS, text)
    assert found is not None, text[-3000:]
    return found[1]


@pytest.mark.zoo
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("script", "option", "host"),
    [
        ("torch_checkpoint.py", "--checkpoint", 1),
        pytest.param("torch_checkpoint.py", "--checkpoint", 0, marks=pytest.mark.long),
        pytest.param("tf_checkpoint.py", "--folder", 1, marks=pytest.mark.long),
        pytest.param("tf_checkpoint.py", "--folder", 0, marks=pytest.mark.long),
    ],
)
def test_the_result_is_that_of_a_run_that_never_failed(
    tmp_path: Path, script: str, option: str, host: int
) -> None:
    need()
    words = (f"examples/{script}", "--steps", "150", option)
    well = Run(tmp_path / "well", "-n", "2", "--warm", *words, str(tmp_path / "a"))
    assert well.process.wait(240) == 0, well.text[-3000:]
    with Bed(2, lifetime=380) as bed:
        framework = "torch" if script.startswith("torch") else "tensorflow"
        job = Hosted(bed, framework, (*words, str(tmp_path / "b"), "--pause", "0.01"))
        job.wait_for("step  100 ")
        job.hurt(host)
        for index, (code, report) in enumerate(job.end()):
            text = job.text(index)
            assert (code, report["outcome"], report["restarts"]) == (0, "completed", 1), text
            first = report["rounds"][0]
            assert first["cause"]["what"] == "was killed by SIGKILL"
            assert first["decision"] == f"worker {host} was killed by SIGKILL; restart 1 of 3"
            assert f"round 0: worker {host} was killed by SIGKILL" in text
            assert "EXIT001" in {f["rule"] for f in report["findings"]}
        assert "going on after step 100" in job.text(0)
        assert loss(job.text(0)) == loss(well.text)


@pytest.mark.zoo
@pytest.mark.timeout(200)
def test_an_exception_that_comes_again_is_not_met_a_third_time() -> None:
    need()
    words = (str(JOBS / "torch_ddp.py"), "--fault", "exception", "--guilty", "1")
    with Bed(2, lifetime=180) as bed:
        job = Hosted(bed, "torch", words, ("--on-failure", "restart", "--max-restarts", "9"))
        for index, (code, report) in enumerate(job.end()):
            assert (code, report["outcome"], report["restarts"]) == (1, "failed", 1), index
            assert "as in round 0: it would fail in every round" in report["rounds"][1]["decision"]
            assert "not started again: worker 1 raised" in job.text(index)


@pytest.mark.zoo
@pytest.mark.timeout(200)
@pytest.mark.parametrize("lost", [0, pytest.param(1, marks=pytest.mark.long)])
def test_who_is_lost_with_its_agent_ends_the_job_everywhere(tmp_path: Path, lost: int) -> None:
    need()
    words = ("examples/torch_checkpoint.py", "--checkpoint", str(tmp_path / "c"), "--pause", "0.01")
    with Bed(2, lifetime=180) as bed:
        job = Hosted(bed, "torch", (*words, "--every", "20", "--steps", "9000"))
        job.wait_for("step   20 ")
        job.lose_agent(lost)
        other = 1 - lost
        ((code, report),) = job.end((other,))
        assert (code, report["outcome"], report["restarts"]) == (1, "failed", 0)
        said = "the agent at h0:29500, which decides about restarts for all hosts, is lost"
        if lost:
            said = "h1 is lost: the workers there cannot be restarted from here"
        assert said in report["rounds"][0]["decision"]
        assert f"not started again: {said}" in job.text(other)


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(300)
@pytest.mark.parametrize("lost", [0, 1])
def test_a_host_that_is_cut_off_while_it_trains_ends_the_job_everywhere(
    tmp_path: Path, lost: int
) -> None:
    need()
    words = ("examples/torch_checkpoint.py", "--checkpoint", str(tmp_path / "c"), "--pause", "0.01")
    with Bed(2, lifetime=280) as bed:
        job = Hosted(bed, "torch", (*words, "--every", "20", "--steps", "90000"))
        job.wait_for("step   20 ")
        bed.unplug(f"h{lost}")
        for code, report in job.end():
            assert (code, report["outcome"], report["restarts"]) == (1, "failed", 0)
        assert "nothing has come from the leader for 30 s" in job.text(1)
        assert "nothing has come from h1 for 30 s" in job.text(0)


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(300)
def test_a_host_that_was_cut_off_for_a_while_goes_on(tmp_path: Path) -> None:
    need()
    words = ("examples/torch_checkpoint.py", "--checkpoint", str(tmp_path / "c"), "--pause", "0.01")
    with Bed(2, lifetime=280) as bed:
        job = Hosted(bed, "torch", (*words, "--every", "20", "--steps", "3000"))
        job.wait_for("step   20 ")
        bed.unplug("h1")
        job.wait_for("nothing has come from h1 for 30 s")
        bed.plug("h1")
        job.wait_for("h1 answers again")
        for code, report in job.end():
            assert (code, report["outcome"], report["restarts"]) == (0, "completed", 0)


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(200)
def test_where_one_host_does_not_allow_it_nothing_is_started_again(tmp_path: Path) -> None:
    need()
    words = ("examples/torch_checkpoint.py", "--checkpoint", str(tmp_path / "c"), "--pause", "0.01")
    with Bed(2, lifetime=180) as bed:
        words = (*words, "--every", "20", "--steps", "9000")
        job = Hosted(bed, "torch", words, others={1: ("--verbose",)})
        job.wait_for("step   20 ")
        assert "ENV011 restarts-differ" in job.text(0).partition("step   20 ")[0]
        job.hurt(1)
        (code, report), _ = job.end()
        assert (code, report["restarts"]) == (1, 0)
        assert "--on-failure restart is not given on h1" in report["rounds"][0]["decision"]


@pytest.mark.zoo
@pytest.mark.timeout(300)
@pytest.mark.parametrize("lost", [1, pytest.param(0, marks=pytest.mark.long)])
def test_a_killed_task_of_tensorflow_1_comes_back_by_its_own_agent(
    tmp_path: Path, lost: int
) -> None:
    need()
    words = ("examples/tf1_ps_digits.py", "--steps", "500", "--pause", "0.01", "--checkpoints")
    with Bed(2, lifetime=280) as bed:
        folder = str(tmp_path / "checkpoints")
        job = Hosted(bed, "tensorflow", (*words, folder), roles=("worker", "ps"))
        job.wait_for(r"step +199 ")
        job.hurt(lost)
        for index, (code, report) in enumerate(job.end()):
            assert (code, report["outcome"], report["restarts"]) == (0, "completed", 0), index
            (back,) = report["returns"]
            task = ("worker-0", "ps-0")[lost]
            assert (back["task"], back["cause"]) == (
                task,
                f"{task.replace('-', ' ')} was killed by SIGKILL",
            )
            assert back["seconds"] is not None
            assert f"{task.replace('-', ' ')} came back" in job.text(index)
        assert "goes on after step" in job.text(0)
        assert "test accuracy" in job.text(0)


@pytest.mark.zoo
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=LONG)])
def test_a_server_of_another_host_comes_back_with_its_values(
    tmp_path: Path, number: signal.Signals
) -> None:
    """They are kept on the chief's host, and nothing of them was ever on a disk."""
    need()
    with Bed(2, lifetime=280) as bed:
        job = valued(bed, tmp_path / "stop", ("worker", "ps"))
        brought_back(job, tmp_path / "stop", 1, number)
        assert "ps 0 is back" in job.text(1) and "a snapshot of" not in job.text(1)


@pytest.mark.long
@pytest.mark.zoo
@pytest.mark.timeout(300)
def test_another_host_than_the_chief_s_may_decide(tmp_path: Path) -> None:
    """The agents meet in etcd, and the host of the server was elected, since it came first."""
    need(*etcd.NEEDS)
    with Bed(2, lifetime=280) as bed:
        served = etcd.Etcd(bed, "h1")
        where = ("--coordinator", "etcd://h1:2379/values")
        job = valued(bed, tmp_path / "stop", ("worker", "ps"), where, first=1)
        brought_back(job, tmp_path / "stop", 1, signal.SIGKILL)
        assert "h1 restarts it" not in job.text(1)  # it is the one that decides
        del served


def valued(
    bed: Bed, stop: Path, roles: tuple[str, ...], more: tuple[str, ...] = (), first: int = 0
) -> Hosted:
    options = ("--on-failure", "restart", "--ps-snapshot", "0.5", "--ps-standby", "on")
    options = (*options, "--stopped-after", "2", *more)
    words = (str(HERE / "ps_values.py"), "--until", str(stop))
    return Hosted(bed, "tensorflow", words, options, roles=roles, first=first)


def brought_back(job: Hosted, stop: Path, server: int, number: signal.Signals) -> None:
    """The server is hurt, comes back with the values of a snapshot, and the job comes to its end."""
    job.wait_for("a snapshot of 10 variables")
    job.wait_for(VALUES, count=len(re.findall(VALUES, job.text(0))) + 200)
    before = len(re.findall(VALUES, job.text(0)))
    job.hurt(server, number)
    job.wait_for("ps 0 is back")
    job.wait_for(VALUES, count=before + 50)
    stop.touch()
    for index, (code, report) in enumerate(job.end()):
        assert (code, report["outcome"], report["restarts"]) == (0, "completed", 0), index
        (back,) = report["returns"]
        assert back["task"] == "ps-0" and back["seconds"] <= back["out_s"]
        assert 0 <= back["snapshot_age_s"] < 30 and back["lost_steps"] is not None
        boxes = f"/dev/shm/allaboard-0-{report['job']}"
        assert not job.bed.path(job.hosts[index], boxes).exists()
    seen = [[int(v) for v in values] for values in re.findall(VALUES, job.text(0))]
    assert all(step > 100 for step, *_ in seen[150:])
    lost = len(seen) - seen[-1][0]  # a line a step, and nobody else makes any
    assert abs(lost - back["lost_steps"]) < 20 + 0.2 * back["lost_steps"]
    for step, *values in seen:
        assert all(abs(value - step) < 40 for value in values)
