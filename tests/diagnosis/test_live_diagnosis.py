"""`diagnose` of living processes that somebody else started: real ranks, looked at from outside."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from allaboard.diagnosis.live import live_diagnosis, remote_diagnosis
from allaboard.diagnosis.live.target_selection import NoSuchProcessError, choose_processes
from allaboard.facts import Frame, LockWait, Member, Phase, Stack, Who
from allaboard.facts.live_look import Departed, HostLook, Present, Socket
from allaboard.hosts import rank_processes
from allaboard.hosts.process_sockets import process_sockets
from allaboard.report.diagnosis import as_json, as_text
from bedded import need
from free_ports import free_port
from testbed import Bed, ssh

SECRET = "not-for-the-world-31"
# What a rank of a store does: listens, knocks, sleeps. A framework would take seconds to import.
RANK = """import os, socket, sys, time
rank, port = int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
if rank == 0:
    door = socket.create_server(("127.0.0.1", port))
else:
    stream = socket.create_connection(("127.0.0.1", port))
print("up", flush=True)
if rank == 0:
    kept = [door.accept() for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
def rest():
    time.sleep(600)
rest()
"""
Start = Callable[..., list[int]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    script = tmp_path / "rank_of_test.py"
    script.write_text(RANK)
    started: list[subprocess.Popen[str]] = []

    def begin(count: int, size: int, **more: str) -> list[int]:
        port = str(free_port())
        for rank in range(count):
            variables = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
                         "MASTER_PORT": port, "MY_API_TOKEN": SECRET, **more}  # fmt: skip
            process = subprocess.Popen(
                [sys.executable, str(script), "--token", SECRET],
                env={"PATH": os.environ["PATH"], **variables},
                stdout=subprocess.PIPE,
                text=True,
            )
            started.append(process)
            assert process.stdout is not None and process.stdout.readline() == "up\n"
        return [p.pid for p in started]

    yield begin
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def allaboard(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "allaboard", "diagnose", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_who_is_connected_to_whom_and_what_they_were_told(start: Start) -> None:
    pids = start(2, 3)
    done = allaboard(*map(str, pids))
    said = done.stdout.splitlines()
    assert "asleep at rank_of_test.py:11 in rest" in said[3]
    assert said[4].startswith("  environment: RANK=1 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1")
    assert said[2].startswith("  listens on 127.0.0.1:") and said[2].endswith("connected to rank 1")
    assert said[5] == "  is connected to rank 0"
    assert "rank 2 of 3: no process of it was examined" in done.stdout
    assert SECRET not in done.stdout


INIT = Stack(
    frames=(
        Frame("/site-packages/torch/distributed/distributed_c10d.py", 1, "init_process_group"),
        Frame("/home/u/train.py", 4, "main"),
    ),
    taken_at=10.0,
    samples=5,
    span=2.0,
)


def in_init(rank: int, size: int = 3) -> Present:
    told = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "h", "MASTER_PORT": "1"}
    who = Who(index=rank, rank=rank, host="h", pid=100 + rank)
    member = Member(who=who, worker=rank, phase=Phase.TRAINING, stack=INIT)
    return Present(member=member, variables=told)


def with_ended(*gone: Departed, size: int = 3) -> HostLook:
    present = (in_init(0, size), in_init(1, size))
    return HostLook(host="h", now=12.0, present=present, departed=gone)


def at_line(rank: int, text: str, framework: str) -> Present:
    seen = Stack(frames=(Frame("/home/u/train.py", 4 + rank, "main", text),), taken_at=10.0,
                 samples=5, span=2.0)  # fmt: skip
    who = Who(index=rank, rank=rank, host="h", pid=100 + rank)
    return Present(
        member=Member(who=who, worker=rank, phase=Phase.TRAINING, stack=seen, framework=framework)
    )


def test_who_reads_a_value_of_jax_waits_for_who_sleeps() -> None:
    present = (at_line(0, "np.asarray(loss)", "jax"), at_line(1, "time.sleep(9)", "jax"))
    (one,) = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=present)]
    ).findings
    assert one.rule == "HANG005" and [w.rank for w in one.who] == [1]


def test_a_rank_that_is_not_known_is_called_by_its_name() -> None:
    known = (at_line(0, "np.asarray(loss)", "jax"), at_line(1, "time.sleep(9)", "jax"))
    unknown = tuple(
        msgspec.structs.replace(
            p,
            member=msgspec.structs.replace(
                p.member, who=msgspec.structs.replace(p.member.who, rank=-1)
            ),
        )
        for p in known
    )
    (one,) = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=unknown)]
    ).findings
    said = " ".join(e.observed for e in one.evidence)
    assert "pid 100 waits in a read of a JAX value" in said and "-1" not in said


def test_all_that_stand_where_no_place_says_for_whom_are_said_to_stand() -> None:
    present = (at_line(0, "step(weights)", "jax"), at_line(1, "time.sleep(9)", "jax"))
    said = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=present)]
    ).conclusion
    assert said.startswith(
        "no finding: all 2 processes stand still, but none at a place that shows"
    )
    assert said.endswith("py-spy dump --native --pid 100")


def test_a_rank_that_has_not_imported_is_named_by_its_command_line() -> None:
    def with_command(present: Present, rank: int) -> Present:
        return msgspec.structs.replace(present, command=("python", "t.py", str(rank), "3"))

    late = at_line(0, "time.sleep(9)", "")
    who = msgspec.structs.replace(late.member.who, rank=-1, index=2)
    late = msgspec.structs.replace(late, member=msgspec.structs.replace(late.member, who=who))
    present = (with_command(in_init(1), 1), with_command(in_init(2), 2), with_command(late, 0))
    answer = live_diagnosis.diagnose_processes([HostLook(host="h", now=12.0, present=present)])
    (one,) = answer.findings
    assert one.rule == "JOIN002" and [w.rank for w in one.who] == [0] and not answer.missing
    contradicting = (with_command(in_init(1), 2), with_command(in_init(2), 1), present[2])
    answer = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=contradicting)]
    )
    assert answer.findings[0].who[0].rank == -1


def test_a_zombie_is_the_rank_that_the_others_wait_for() -> None:
    found = live_diagnosis.diagnose_processes(
        [with_ended(Departed(pid=7, waited_for=False, code=1))]
    )
    (one,) = found.findings
    assert one.rule == "JOIN003" and one.who[0].rank == 2 and one.who[0].pid == 7
    assert "exit code 1" in one.summary and one.certainty == "likely"
    assert not found.missing and "pid 7 of h: has ended, exit code 1" in found.told[-1]


def test_who_is_not_there_at_all_may_have_been_no_rank() -> None:
    found = live_diagnosis.diagnose_processes([with_ended(Departed(pid=7))])
    assert [f.rule for f in found.findings] == ["JOIN001"] and found.missing
    assert "pid 7 of h: no such process" in found.told[-1]
    two = live_diagnosis.diagnose_processes(
        [with_ended(Departed(pid=7, waited_for=False, code=1), size=4)]
    )
    assert "JOIN003" not in {f.rule for f in two.findings}, "one of two: which is not known"


def test_a_process_that_has_ended_is_told_and_the_others_are_looked_at(start: Start) -> None:
    pids = start(2, 3)
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(5)"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        done = allaboard(*map(str, pids), str(ended.pid))
        assert f"pid {ended.pid} of" in done.stdout and "has ended, exit code 5" in done.stdout
        assert "asleep at rank_of_test.py:11" in done.stdout
        alone = allaboard(str(ended.pid))
        assert alone.returncode == 2 and "has ended, exit code 5" in alone.stderr


def test_two_ranks_of_one_number_are_told_from_their_environment(start: Start) -> None:
    start(2, 2)
    pids = start(1, 2)
    done = allaboard(*map(str, pids[1:]), "--format", "json")
    rules = {f["rule"]: f for f in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert "ENV005" in rules and "MASTER_PORT" in rules["ENV005"]["summary"]


def test_a_bundle_holds_what_a_report_needs_and_no_secret(start: Start, tmp_path: Path) -> None:
    pids = start(2, 2)
    out = tmp_path / "bundle.tar.gz"
    allaboard(*map(str, pids), "--bundle", str(out))
    assert out.stat().st_mode & 0o777 == 0o600
    with tarfile.open(out) as tar:
        texts = {Path(m.name).name: tar.extractfile(m).read().decode() for m in tar}  # type: ignore[union-attr]
    assert {"diagnosis.txt", "diagnosis.json", "host.txt"} < set(texts)
    (name,) = (n for n in texts if n.startswith("processes-"))
    look = msgspec.json.decode(texts[name], type=HostLook)
    assert [p.variables["RANK"] for p in look.present] == ["0", "1"]
    assert look.present[0].command[-2:] == ("--token", "(redacted)")
    assert not any(SECRET in text for text in texts.values())


def test_a_bundle_of_a_run_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    (run / "journal.jsonl").write_text('{"kind":"event","at":"x","text":"--api-key=abcdefgh1"}\n')
    (run / "logs/worker-0.log").write_text(f"WANDB_API_KEY={SECRET}\nloss 0.1\n")
    (run / "core").write_bytes(b"\x7fELF\0\0" + SECRET.encode())
    (run / "feed.secret").write_text("0123456789abcdef" * 4)
    (run / "series.jsonl").write_text('{"kind":"members"}\n')
    out = tmp_path / "b.tar.gz"
    with socket.socket(socket.AF_UNIX) as feed:
        feed.bind(str(run / "feed.sock"))
        refused = allaboard(str(run), "--bundle", str(out))
        assert refused.returncode == 2 and "add --yes" in refused.stderr and not out.exists()
        done = allaboard(str(run), "--bundle", str(out), "--yes")
    assert done.returncode in (0, 1), done.stderr
    with tarfile.open(out) as tar:
        texts = {Path(m.name).name: tar.extractfile(m).read().decode() for m in tar}  # type: ignore[union-attr]
    assert texts["worker-0.log"] == "WANDB_API_KEY=(redacted)\nloss 0.1\n"
    assert "core" not in texts and "binary, left out" in texts["left-out.txt"]
    assert not any("0123456789abcdef" in t for t in texts.values())
    assert "feed.s" not in done.stdout and "series.jsonl: not part" not in done.stdout
    assert not any(SECRET in t or "abcdefgh1" in t for t in texts.values())
    json.loads(texts["journal.jsonl"])
    removed = "     2 values of names such as password, token or key"
    assert removed in texts["redacted.txt"] and f"  {removed}" in done.stderr


def test_a_bundle_that_cannot_be_written(start: Start, tmp_path: Path) -> None:
    (pid,) = start(1, 2)
    done = allaboard(str(pid), "--bundle", str(tmp_path / "absent" / "b.tar.gz"))
    assert done.returncode == 2 and "--bundle" in done.stderr and "Traceback" not in done.stderr


def test_ranks_are_found_by_a_word_of_their_command_line(start: Start, tmp_path: Path) -> None:
    pids = start(2, 2)
    word = str(tmp_path)  # another test may run a script of the same name
    assert rank_processes.find_ranks([word]) == sorted(pids)
    assert set(pids) <= set(rank_processes.find_ranks([]))
    assert choose_processes([word]).pids == sorted(pids)
    with pytest.raises(NoSuchProcessError, match=r"with no_such_script\.py in its command line"):
        choose_processes(["no_such_script.py"])


def test_a_knock_without_an_answer_is_seen() -> None:
    """A listener whose backlog is full answers no further SYN."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen(0)
        knocks = [socket.socket() for _ in range(4)]
        for knock in knocks:
            knock.setblocking(False)
            knock.connect_ex(door.getsockname())
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            states = [s.state for s in process_sockets(os.getpid())]
            if "SYN-SENT" in states:
                break
        assert "LISTEN" in states and "SYN-SENT" in states
        for knock in knocks:
            knock.close()


def person(rank: int, host: str, frames: tuple[Frame, ...], **variables: str) -> Present:
    pid = 100 + rank % 2
    member = Member(
        who=Who(index=rank, rank=rank, host=host, pid=pid),
        worker=rank % 2,
        phase=Phase.TRAINING,
        stack=Stack(frames=frames, taken_at=50.0, samples=5, span=2.0, by="py-spy"),
    )
    told = {"RANK": str(rank), "MASTER_ADDR": "h0", "MASTER_PORT": "29500", **variables}
    return Present(member=member, variables=told)


USER = Frame("/home/u/train.py", 12, "train")
C10D = "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
IN = (Frame(C10D, 2800, "all_reduce"), USER)
JOINING = (Frame(C10D, 1700, "init_process_group"), USER)
SLEEP = (Frame("/home/u/train.py", 30, "load", "time.sleep(600)"), USER)


def two_hosts(*stacks: tuple[Frame, ...], size: str = "4") -> tuple[HostLook, ...]:
    people = [person(r, f"h{r // 2}", s, WORLD_SIZE=size) for r, s in enumerate(stacks)]
    return tuple(
        HostLook(host=f"h{h}", now=50.0 + 1000 * h, present=tuple(people[2 * h : 2 * h + 2]))
        for h in (0, 1)
    )


def test_hosts_are_one_job_although_pids_and_clocks_are_their_own() -> None:
    looks = two_hosts(IN, IN, IN, SLEEP)
    found = live_diagnosis.diagnose_processes(looks)
    (finding,) = found.findings
    assert finding.rule.startswith("HANG") and [w.rank for w in finding.who] == [3]
    assert [w.host for w in finding.who] == ["h1"]
    assert not found.missing


def test_who_has_not_come_to_init_is_named() -> None:
    found = live_diagnosis.diagnose_processes(two_hosts(JOINING, JOINING, JOINING, SLEEP))
    (finding,) = found.findings
    assert (finding.rule, finding.certainty) == ("JOIN002", "likely")
    assert [w.rank for w in finding.who] == [3]


def test_a_rank_at_another_port_is_named_once() -> None:
    looks = one_host(*({"MASTER_PORT": port} for port in ("29500", "29500", "29501")))
    (finding,) = live_diagnosis.diagnose_processes(looks).findings
    assert (finding.rule, [w.rank for w in finding.who]) == ("JOIN007", [2])


def test_a_rank_claimed_twice_is_named_once_and_the_free_one_not_as_missing() -> None:
    looks = one_host({}, {}, {"RANK": "1"})
    (finding,) = live_diagnosis.diagnose_processes(looks).findings
    assert (finding.rule, [w.rank for w in finding.who]) == ("JOIN005", [1, 1])
    assert "rank 2" in finding.summary


def test_a_rank_claimed_twice_leaves_another_one_missing() -> None:
    looks = one_host({}, {}, {"RANK": "1"}, size="4")
    rules = {f.rule for f in live_diagnosis.diagnose_processes(looks).findings}
    assert rules == {"JOIN001", "JOIN005"}


def test_a_missing_rank_is_started_after_the_example_of_one_that_expects_it() -> None:
    looks = one_host({}, {"WORLD_SIZE": "4"}, {"WORLD_SIZE": "4"})
    present = [msgspec.structs.replace(p, command=("python", "t.py")) for p in looks[0].present]
    look = msgspec.structs.replace(looks[0], present=tuple(present))
    found = {f.rule: f for f in live_diagnosis.diagnose_processes((look,)).findings}
    assert found.keys() == {"JOIN001", "JOIN006"}
    assert "RANK=3 WORLD_SIZE=4" in found["JOIN001"].fix
    assert "of worker 0 to 4 (" in found["JOIN006"].fix
    assert found["JOIN006"].fix.endswith(
        "; or that of the others to 3, which is how many are there"
    )


def test_a_world_size_that_fits_nobody_is_simply_wrong() -> None:
    looks = one_host({"WORLD_SIZE": "2"}, {}, {})
    found = {f.rule: f for f in live_diagnosis.diagnose_processes(looks).findings}
    assert "JOIN006" in found and "or that of the others" not in found["JOIN006"].fix


def test_a_job_that_was_started_at_the_port_of_another_is_not_awaited_by_that() -> None:
    looks = one_host({}, {}, {"RANK": "1"}, size="2")
    trains = Stack(frames=SLEEP, taken_at=50.0, samples=5, span=2.0, by="py-spy", moving=True)
    present = [
        msgspec.structs.replace(p, member=msgspec.structs.replace(p.member, stack=trains))
        for p in looks[0].present[:2]
    ]
    look = msgspec.structs.replace(looks[0], present=(*present, looks[0].present[2]))
    (finding,) = live_diagnosis.diagnose_processes((look,)).findings
    assert (finding.rule, {w.pid for w in finding.who}) == ("JOIN005", {101, 102})
    assert "started twice" in finding.fix


def test_a_server_of_which_nothing_is_stated_is_not_blamed() -> None:
    site = "/v/lib/python3.11/site-packages/tensorflow/python/"
    joins = (Frame(f"{site}training/server_lib.py", 200, "join"), USER)
    opens = (Frame(f"{site}client/session.py", 1500, "_extend_graph"), USER)
    people = []
    for number, stack in enumerate((opens, opens, joins)):
        one = person(number, "h0", stack)
        member = msgspec.structs.replace(one.member, who=Who(index=-1, host="h0", pid=100 + number))
        people.append(msgspec.structs.replace(one, member=member, variables={}))
    found = live_diagnosis.diagnose_processes(
        (HostLook(host="h0", now=50.0, present=tuple(people)),)
    )
    assert found.findings == ()
    assert found.conclusion


def one_host(*variables: dict[str, str], size: str = "3") -> tuple[HostLook, ...]:
    people = []
    for number, more in enumerate(variables):
        rank = int(more.get("RANK", number))
        local = {"MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": size, **more}
        one = person(rank, "h0", JOINING, **local)
        who = msgspec.structs.replace(one.member.who, pid=100 + number)
        people.append(
            msgspec.structs.replace(one, member=msgspec.structs.replace(one.member, who=who))
        )
    return (HostLook(host="h0", now=50.0, present=tuple(people)),)


def test_a_rank_that_is_nowhere_is_missing_and_likely_the_cause() -> None:
    found = live_diagnosis.diagnose_processes(
        two_hosts(JOINING, JOINING, JOINING, JOINING, size="6")
    )
    (finding,) = found.findings
    assert (finding.rule, finding.certainty) == ("JOIN001", "likely")
    assert found.missing and "ranks 4-5 of 6" in found.missing[0]


def test_a_host_that_cannot_be_asked_is_missing() -> None:
    looks = (*two_hosts(IN, IN, IN, IN)[:1], HostLook(host="h1", trouble="Connection refused"))
    found = live_diagnosis.diagnose_processes(looks)
    assert "h1: Connection refused" in found.missing
    assert "ranks 2-3 of 4" in found.missing[1]
    assert as_text(found) and as_json(found)


def test_what_another_host_says_is_shown_harmless() -> None:
    evil = Socket("\x1b]0;x\x07:1", "10.0.0.9:29500", "SYN-SENT")
    one = person(0, "h\x1b[2J", IN, WORLD_SIZE="2", MASTER_ADDR="\x1b[31m")
    look = HostLook(
        host="h\x1b[2J",
        now=50.0,
        present=(msgspec.structs.replace(one, sockets=(evil,)),),
        lock_waits=(LockWait(100, (1,), "\x1b[2J"),),
    )
    text = as_text(live_diagnosis.diagnose_processes((look,)))
    assert "\x1b" not in text and "has no answer yet (SYN-SENT) from 10.0.0.9:29500" in text


@pytest.mark.parametrize(
    ("client", "says"),
    [
        ("no-such-ssh", "no-such-ssh: no such file or directory"),
        ("sh -c 'echo Permission denied >&2; exit 255' ssh", "Permission denied"),
        ("sh -c 'exit 127' ssh", "give the command: --remote"),
        ("sh -c 'echo {}' ssh", "another version of allaboard"),
        ("sh -c 'echo torn {' ssh", "another version of allaboard"),
    ],
)
def test_a_host_that_answers_otherwise(client: str, says: str) -> None:
    (look,) = remote_diagnosis.inspect_hosts({"h0": []}, client, "allaboard")
    assert says in look.trouble and look.host == "h0"


def test_hosts_are_no_options_and_pids_are_of_one_host() -> None:
    done = allaboard("--hosts=-oProxyCommand=x,h1")
    assert done.returncode == 2 and "--hosts expects host names" in done.stderr
    done = allaboard("--hosts", "h0,h1", "4711")
    assert done.returncode == 2 and "h0:4711" in done.stderr


def test_over_ssh(tmp_path: Path) -> None:
    """Two hosts of a test bed, with a real sshd on each."""
    need(*ssh.NEEDS)
    script = tmp_path / "rank_of_test.py"
    script.write_text(RANK.replace('"127.0.0.1", port', 'os.environ["MASTER_ADDR"], port'))
    with Bed(2) as bed:
        service = ssh.Ssh(bed)
        told = {"PATH": os.environ["PATH"], "WORLD_SIZE": "2", "MASTER_ADDR": bed.addresses["h0"],
                "MASTER_PORT": "29500", "MY_API_TOKEN": SECRET}  # fmt: skip
        ranks_there = []
        for rank in (0, 1):
            words = [sys.executable, str(script), "--token", SECRET]
            ranks_there.append(bed.start(f"h{rank}", words, {**told, "RANK": str(rank)}))
            deadline = time.monotonic() + 20
            while "up" not in ranks_there[-1].text() and time.monotonic() < deadline:
                time.sleep(0.05)
        command = [sys.executable, "-m", "allaboard", "diagnose", "--hosts", "h0,h1", script.name]
        client = ["--ssh", shlex.join(service.command)]
        asked = bed.start("h0", [*command, *client], dict(os.environ))
        asked.wait(60)
        said = asked.text()
        (pid,) = re.findall(r"rank 1, h1, pid (\d+)", said) or [said]
        one = bed.start("h0", [*command[:4], f"h1:{pid}", *client], dict(os.environ))
        one.wait(60)
        alone = one.text()
    assert "worker 0 (rank 0, h0, pid" in said and ": asleep at rank_of_test.py:11" in said
    assert f"(rank 1, h1, pid {pid}): asleep at rank_of_test.py:11" in alone
    assert "rank 0 of 2: no process of it was examined" in alone
    assert "is connected to rank 1" in said and "is connected to rank 0" in said
    assert SECRET not in said


def test_who_waits_while_another_still_moves_is_said_where_nothing_was_found() -> None:
    waits, moves = person(0, "h0", IN, WORLD_SIZE="2"), person(1, "h0", (USER,), WORLD_SIZE="2")
    stack = msgspec.structs.replace(moves.member.stack, moving=True)  # type: ignore[type-var]
    member = msgspec.structs.replace(moves.member, stack=stack)
    moves = msgspec.structs.replace(moves, member=member)
    look = HostLook(host="h0", now=52.0, allaboard="0", present=(waits, moves))
    assert live_diagnosis.diagnose_processes((look,), look_count=2).conclusion == (
        "waiting: worker 0 waits for worker 1 (train.py:12 in train), which is still running "
        "(examined 2 times): a long step, or a hang that has just begun; run diagnose again in 10 s"
    )
    alone = msgspec.structs.replace(look, present=(moves,))
    assert (
        "alone" in live_diagnosis.diagnose_processes((alone,)).conclusion
        or live_diagnosis.diagnose_processes((alone,)).missing
    )


def test_who_stands_still_for_another_reason_is_not_said_to_move() -> None:
    line = "subprocess.run(['unzip', 'data.zip'])"
    child = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")
    stands = person(1, "h0", (child, Frame("/home/u/train.py", 12, "train", line)), WORLD_SIZE="2")
    look = HostLook(
        host="h0", now=52.0, allaboard="0",
        present=(person(0, "h0", IN, WORLD_SIZE="2"), stands),
    )  # fmt: skip
    found = live_diagnosis.diagnose_processes((look,))
    assert not found.findings
    assert found.conclusion.startswith(
        "waiting: worker 0 waits for worker 1, which stands still (train.py:12 in train): waiting for a "
        "child process."
    )


def test_where_all_sleep_nobody_waits() -> None:
    present = tuple(at_line(r, "time.sleep(9)", "torch") for r in range(2))
    said = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=present)]
    ).conclusion
    assert said.endswith("and none waits for another: worker 0 is asleep (train.py:4 in main), "
                         "worker 1 is asleep (train.py:5 in main)")  # fmt: skip


GROUP = Stack(
    frames=(
        Frame("/site-packages/torch/distributed/distributed_c10d.py", 1, "_new_process_group_helper"),
        Frame("/site-packages/torch/distributed/distributed_c10d.py", 1, "new_group"),
        Frame("/home/u/train.py", 9, "main"),
    ),
    taken_at=10.0, samples=5, span=2.0,
)  # fmt: skip


def test_who_makes_a_group_has_been_through_init() -> None:
    makes = tuple(
        msgspec.structs.replace(p, member=msgspec.structs.replace(p.member, stack=GROUP))
        for p in (in_init(0), in_init(1))
    )
    late = at_line(2, "time.sleep(9)", "torch")
    (one,) = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=(*makes, late))]
    ).findings
    assert one.rule == "HANG005" and [w.rank for w in one.who] == [2]
    assert any("creating a process group" in e.observed for e in one.evidence)


def test_who_is_in_a_collective_while_another_leaves_init_is_not_late() -> None:
    through = person(0, "h", IN, WORLD_SIZE="2")
    found = live_diagnosis.diagnose_processes(
        [HostLook(host="h", now=12.0, present=(through, in_init(1, 2)))]
    )
    assert not [f for f in found.findings if f.rule.startswith("JOIN")]


def test_what_is_no_rank_and_started_none_is_refused() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        done = allaboard(str(process.pid))
        process.kill()
    assert done.returncode == 2
    assert f"process {process.pid} (sleep 60) is not a Python process" in done.stderr


def test_the_ranks_of_two_jobs_are_not_taken_for_one() -> None:
    code = shlex.quote(r"import os, time; os.write(1, b'1\n'); time.sleep(60)")
    rank = f"(RANK=0 {shlex.quote(sys.executable)} -c {code}; :)"
    command = ["sh", "-c", f"{rank} & {rank} & wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as above:
        assert above.stdout is not None
        assert above.stdout.readline() == above.stdout.readline() == b"1\n"
        done = allaboard(str(above.pid))
        os.killpg(above.pid, signal.SIGKILL)
    assert done.returncode == 2 and "ranks of several jobs run below " in done.stderr
