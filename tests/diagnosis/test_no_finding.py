"""The last word on one process whose peers are not on this host."""

from __future__ import annotations

from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.facts import Diagnosis, Frame, Member, Phase, Stack, Who
from allaboard.facts.live_look import Awaited, Departed, HostLook, Present, Socket

BACKWARD = Frame("/site-packages/torch/autograd/graph.py", 1, "_engine_run_backward")
OWN = Frame("/home/u/train.py", 9, "main", "loss.backward()")


def last_word(
    *frames: Frame,
    moving: bool = False,
    cpu: float = 0.0,
    size: str = "2",
    sockets: tuple[Socket, ...] = (),
) -> str:
    stack = Stack(frames=(*frames, OWN), taken_at=10.0, samples=5, span=2.0, moving=moving)
    member = Member(
        who=Who(index=0, rank=0, host="h", pid=100),
        worker=0,
        phase=Phase.TRAINING,
        stack=stack,
        cpu=cpu,
    )
    variables = {"RANK": "0", "WORLD_SIZE": size, "MASTER_ADDR": "h", "MASTER_PORT": "1"}
    present = Present(member=member, variables=variables, sockets=sockets)
    answer = diagnose_processes([HostLook(host="h", now=12.0, present=(present,))])
    assert not answer.findings
    return answer.conclusion


def test_who_stands_in_backward_is_said_to_wait_and_where_to_look() -> None:
    text = last_word(BACKWARD, sockets=(Socket("10.0.0.1:5", "10.0.0.2:6", "ESTAB"),))
    assert text == (
        "no finding: it waits for others, in a training step (train.py:9 in main), and no other process "
        "of its job was found on this host (it is connected to 10.0.0.2); look at the others, "
        "on their hosts: allaboard diagnose --hosts 10.0.0.2"
    )


def test_who_moves_or_computes_runs() -> None:
    for text in (last_word(BACKWARD, moving=True), last_word(BACKWARD, cpu=0.9)):
        assert text.startswith("no finding: only this process was examined, and it is running (")


def test_who_stands_still_alone_has_no_peers() -> None:
    text = last_word(size="1")
    assert "nothing shows that it belongs to a job of several processes" in text
    assert text.endswith("see py-spy dump --pid 100") and "--hosts" not in text


def of_two(
    *frames: Frame,
    sockets: tuple[Socket, ...] = (),
    connected: tuple[Awaited, ...] = (),
    cpu: float = 0.0,
    io: float = 0.0,
    **more: object,
) -> str:
    """What is said where rank 0 waits for rank 1, which has this stack."""
    people = []
    for rank, own in enumerate(((BACKWARD, OWN), frames)):
        stack = Stack(frames=own, taken_at=10.0, samples=5, span=2.0, **(more if rank else {}))  # type: ignore[arg-type]
        who = Who(index=rank, rank=rank, host="h", pid=100 + rank)
        member = Member(
            who=who, worker=rank, phase=Phase.TRAINING, stack=stack, io=io if rank else 0.0
        )
        variables = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}
        own_sockets = sockets if rank else (Socket("10.0.0.1:5", "10.0.0.2:6", "ESTAB"),)
        people.append(
            Present(
                member=member, variables=variables, sockets=own_sockets, connected=connected * rank
            )
        )
    answer = diagnose_processes([HostLook(host="h", now=12.0, present=tuple(people))], 2)
    assert not answer.findings
    return answer.conclusion


def test_the_child_that_is_waited_for_is_named() -> None:
    waits = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")
    text = of_two(waits, OWN, children=((4711, "/usr/bin/unzip data.zip"),))
    assert "(train.py:9 in main): waiting for its child process 4711 (unzip data.zip)." in text
    assert "waiting for a child process." in of_two(waits, OWN)


def test_who_waits_for_an_answer_is_said_to_be_connected_to_whom() -> None:
    reads = Frame("/usr/lib/python3.11/socket.py", 706, "readinto")
    sockets = (
        Socket("10.0.0.2:6", "10.0.0.1:5", "ESTAB"),
        Socket("10.0.0.2:7", "10.0.0.9:443", "ESTAB"),
        Socket("10.0.0.2:8", "10.0.0.8:80", "CLOSE-WAIT"),
    )
    assert "; it is connected to 10.0.0.9:443, which is no rank." in of_two(
        reads, OWN, sockets=sockets
    )
    assert "waiting for the answer of another process. What" in of_two(
        reads, OWN, sockets=sockets[:1]
    )


def test_who_writes_at_one_line_does_not_stand_still() -> None:
    sleeps = Frame("/home/u/train.py", 9, "save", "time.sleep(.01)")
    text = of_two(sleeps, io=5e6)
    assert "which is still running" in text
    assert "stands still" not in text


def test_a_torchrun_without_ranks_waits_for_its_other_nodes() -> None:
    torch = "/site-packages/torch/distributed/"
    frames = (
        Frame(f"{torch}elastic/rendezvous/static_tcp_rendezvous.py", 67, "next_rendezvous"),
        Frame(f"{torch}elastic/agent/server/api.py", 528, "_rendezvous"),
    )
    member = Member(
        who=Who(index=0, rank=0, host="h", pid=100),
        worker=0,
        phase=Phase.TRAINING,
        stack=Stack(frames=frames, taken_at=10.0, samples=5, span=2.0),
    )
    command = (
        "/opt/bin/torchrun", "--nnodes=2", "--node_rank", "0", "--master_addr", "10.0.0.1", "train.py",
    )  # fmt: skip
    present = Present(member=member, command=command, arguments={"RANK": "0"})
    answer = diagnose_processes([HostLook(host="h", now=12.0, present=(present,))])
    assert answer.conclusion.startswith(
        "waiting: torchrun waits in its rendezvous for its other nodes (--nnodes 2 at "
        "10.0.0.1:29500), and has started no rank yet; start torchrun on each of them"
    )
    assert answer.told[0].startswith("pid 100 (rank unknown")


THREADS_END = Frame("/usr/lib/python3.11/threading.py", 1590, "_shutdown")
FEEDER = (
    Frame("/usr/lib/python3.11/threading.py", 1119, "join"),
    Frame("/usr/lib/python3.11/multiprocessing/queues.py", 203, "_finalize_join"),
    Frame("/usr/lib/python3.11/multiprocessing/util.py", 360, "_exit_function"),
)


def at_end(*frames: Frame, threads: tuple[Frame, ...] = (), launched: bool = False) -> Diagnosis:
    stack = Stack(frames=frames, taken_at=10.0, samples=5, span=2.0, other_thread_frames=threads)
    who = Who(index=0, rank=0, host="h", pid=100)
    member = Member(who=who, worker=0, phase=Phase.TRAINING, stack=stack)
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}
    if launched:
        variables |= {"TORCHELASTIC_RUN_ID": "none", "LOCAL_WORLD_SIZE": "2"}
    present = Present(member=member, variables=variables)
    return diagnose_processes([HostLook(host="h", now=12.0, present=(present,))])


def test_a_thread_that_keeps_a_process_at_its_end_is_named() -> None:
    thread = Frame("/home/u/log.py", 12, "run", "row = self.q.get()")
    answer = at_end(THREADS_END, threads=(thread,), launched=True)
    assert answer.conclusion == (
        "waiting: worker 0 is at its end, and waits for its other threads (log.py:12 in run): end the thread "
        "that is at /home/u/log.py:12 (send it what ends its loop), or start it with daemon=True"
    )
    assert answer.missing == (
        "rank 1 of 2: ended, since their launcher runs all ranks on this host; see in their output how",
    )
    answer = at_end(THREADS_END)
    assert answer.conclusion.startswith("no finding: it stands still, shutting down")
    assert "pass its PID" in answer.missing[0]


def test_a_queue_that_nobody_reads_keeps_a_process_at_its_end() -> None:
    answer = at_end(*FEEDER, OWN)
    assert answer.conclusion.startswith(
        "waiting: worker 0 is at its end, and waiting until somebody reads"
    )
    assert "before waiting for its end (join)" in answer.conclusion
    assert at_end(FEEDER[0], OWN).conclusion.startswith("no finding: ")


def test_who_stands_still_beside_a_process_that_has_failed_is_told_of() -> None:
    frames = (Frame("/usr/lib/python3.11/multiprocessing/connection.py", 395, "_recv"), OWN)
    member = Member(
        who=Who(index=-1, rank=-1, host="h", pid=100),
        worker=0,
        phase=Phase.TRAINING,
        stack=Stack(frames=frames, taken_at=10.0, samples=5, span=2.0),
    )
    ended = (Departed(pid=101, waited_for=False, code=1),)
    look = HostLook(host="h", now=12.0, present=(Present(member=member),), departed=ended)
    answer = diagnose_processes([look])
    assert answer.conclusion == (
        "no finding: a process that has ended cannot be examined any more; read its output first. pid 100 is "
        "waiting for the answer of another process (train.py:9 in main): if that should come from the "
        "process that has ended, it never will"
    )


def test_a_full_queue_that_nobody_reads_is_said_to_be_one() -> None:
    put = Frame("/usr/lib/python3.11/multiprocessing/queues.py", 89, "put")
    assert last_word(put).startswith(
        "waiting: worker 0 waits for space in a queue between processes (train.py:9 in main): it is full"
    )
    assert last_word(put, moving=True).startswith("no finding: only this process was examined")


def test_who_holds_the_other_end_of_a_connection_is_named() -> None:
    ends = [Socket(f"127.0.0.1:{5 + n}", f"127.0.0.1:{50077 + n}", "ESTAB") for n in range(2)]
    store = Socket("127.0.0.1:9", "127.0.0.1:1", "ESTAB")
    connected = tuple(
        Awaited(local=end.local, remote=end.remote, pids=(77,), programs=("serve.py",))
        for end in ends
    )
    grpc = Frame("/v/lib/python3.11/site-packages/grpc/_channel.py", 1160, "_blocking")
    text = of_two(grpc, OWN, sockets=(store, *ends[:1]), connected=connected[:1])
    assert (
        ": waiting for an answer from 127.0.0.1:50077 (pid 77 serve.py), its only connection to others. What"
        in text
    )
    text = of_two(grpc, OWN, sockets=(store, *ends), connected=connected)
    assert "it is connected to 127.0.0.1:50077 (pid 77 serve.py), 127.0.0.1:50078 (pid" in text


def test_a_worker_of_tensorflow_1_whose_input_never_comes() -> None:
    run = Frame(
        "/v/lib/python3.11/site-packages/tensorflow/python/client/session.py",
        1,
        "_call_tf_sessionrun",
    )

    def last_words(other_cpu: float) -> str:
        people = []
        for index, cpu in enumerate((0.0, other_cpu)):
            stack = Stack(frames=(run, OWN), taken_at=10.0, samples=5, span=2.0)
            who = Who(index=index, host="h", pid=100 + index)
            member = Member(who=who, worker=index, phase=Phase.TRAINING, stack=stack, cpu=cpu)
            people.append(Present(member=member))
        return diagnose_processes([HostLook(host="h", now=12.0, present=tuple(people))]).conclusion

    text = last_words(0.4)
    assert text.startswith(
        "waiting: pid 100 stands still in Session.run (train.py:9 in main) while"
    )
    assert "a queue whose queue runners were not started" in text
    assert "Session.run" not in last_words(0.0), "all of them wait, maybe for a server"
