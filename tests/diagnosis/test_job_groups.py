"""Which processes belong to one job, by their sockets, their environments and their parents."""

from __future__ import annotations

from allaboard.diagnosis.live.job_groups import Probe, group_jobs, select_ranks
from allaboard.diagnosis.live.training_processes import TrainingProcess, differ_in_one_number
from allaboard.diagnosis.live.unranked_names import ranks_by_differing_word
from allaboard.facts import Socket


def process(
    pid: int,
    parent: int = 1,
    variables: dict[str, str] | None = None,
    command: tuple[str, ...] = ("python", "train.py"),
    links: tuple[tuple[int, int], ...] = (),
    loaded: bool = True,
    network: str = "net:[1]",
) -> TrainingProcess:
    sockets = tuple(Socket(f"127.0.0.1:{a}", f"127.0.0.1:{b}", "ESTAB") for a, b in links)
    return TrainingProcess(
        pid, parent, pid, command, variables or {}, loaded, sockets, network, parent > 1
    )


def env(rank: int, port: int = 29500, **more: str) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": str(port),
            **more}  # fmt: skip


def pids(jobs: list[list[TrainingProcess]]) -> list[list[int]]:
    return [[p.pid for p in job] for job in jobs]


def test_connected_processes_are_one_job() -> None:
    processes = [process(10, links=((5, 9),)), process(11, links=((9, 5),)), process(12)]
    assert pids(group_jobs(processes, {})) == [[10, 11], [12]]


def test_one_meeting_place_is_one_job_and_another_port_or_network_another() -> None:
    processes = [
        process(10, variables=env(0)),
        process(11, variables=env(1)),
        process(12, variables=env(0, port=29501)),
        process(13, variables=env(0), network="net:[2]"),
        process(14, variables=env(0, TORCHELASTIC_RUN_ID="b")),
    ]
    assert pids(group_jobs(processes, {})) == [[10, 11], [12], [13], [14]]


def local(rank: int, port: int, size: int = 3, **more: str) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), **more}  # fmt: skip


def test_a_rank_with_a_wrong_port_belongs_to_the_job_that_lacks_it() -> None:
    processes = [
        process(10, variables=local(0, 1)),
        process(11, variables=local(1, 1)),
        process(12, variables=local(2, 2)),
    ]
    assert pids(group_jobs(processes, {})) == [[10, 11, 12]]


def test_a_rank_that_two_jobs_lack_stays_alone() -> None:
    processes = [
        process(10, variables=local(0, 1)), process(11, variables=local(1, 1)),
        process(12, variables=local(0, 2)), process(13, variables=local(1, 2)),
        process(14, variables=local(2, 3)),
    ]  # fmt: skip
    assert pids(group_jobs(processes, {})) == [[10, 11], [12, 13], [14]]


def test_a_rank_of_a_job_on_other_hosts_or_of_another_script_or_size_stays_alone() -> None:
    first = [process(10, variables=local(0, 1)), process(11, variables=local(1, 1))]
    elsewhere = local(2, 2, MASTER_ADDR="node7")
    for stranger in (
        process(12, variables=elsewhere),
        process(12, variables=local(2, 2, size=4)),
        process(12, variables=local(2, 2), command=("python", "other.py")),
        process(12, variables=local(2, 2), network="net:[2]"),
        process(12, variables={}),
    ):
        assert pids(group_jobs([*first, stranger], {})) == [[10, 11], [12]]


def test_two_whole_jobs_stay_two() -> None:
    processes = [process(10 + r + 2 * p, variables=local(r, p, 2)) for p in (1, 2) for r in (0, 1)]
    assert sorted(pids(group_jobs(processes, {}))) == [[12, 13], [14, 15]]


def test_two_jobs_below_one_sweep_stay_two() -> None:
    processes = [
        process(10, 5, env(0, 1)), process(11, 5, env(1, 1)),
        process(12, 5, env(0, 2)), process(13, 5, env(1, 2)),
    ]  # fmt: skip
    assert pids(group_jobs(processes, {})) == [[10, 11], [12, 13]]


def test_processes_that_one_python_process_spawned_are_one_job_with_it() -> None:
    processes = [process(5), process(10, 5), process(11, 5)]
    assert pids(group_jobs(processes, {})) == [[5, 10, 11]]


def test_runs_that_a_shell_started_with_other_settings_are_no_job() -> None:
    shell = 1  # no Python process
    processes = [
        process(10, shell, command=("python", "t.py", "--lr", "0.1")),
        process(11, shell, command=("python", "t.py", "--lr", "0.2")),
    ]
    assert pids(group_jobs(processes, {})) == [[10], [11]]


def test_the_place_may_be_an_argument() -> None:
    processes = [process(10), process(11), process(12)]
    there = {"MASTER_ADDR": "h", "MASTER_PORT": "7"}
    probes = {10: Probe(arguments=there), 11: Probe(arguments=there)}
    assert pids(group_jobs(processes, probes)) == [[10, 11], [12]]


def test_a_rank_that_has_not_imported_yet_belongs_to_those_of_its_command() -> None:
    late = process(10, command=("python", "t.py", "0", "3"), loaded=False)
    rank = process(11, command=("python", "t.py", "1", "3"))
    assert pids(group_jobs([late, rank], {})) == [[10, 11]]


def test_numbers_that_differ() -> None:
    assert differ_in_one_number(("p", "t.py", "0"), ("p", "t.py", "1"))
    assert differ_in_one_number(("p", "--rank=0"), ("p", "--rank=12"))
    assert not differ_in_one_number(("p", "--rank=0"), ("p", "--rank=0"))
    assert not differ_in_one_number(("p", "--lr", "0.1"), ("p", "--lr", "0.2"))
    assert not differ_in_one_number(("p", "a1.py"), ("p", "a2.py"))
    assert not differ_in_one_number(("p", "0", "1"), ("p", "1", "0"))


def test_a_loaders_worker_is_no_rank_and_a_spawned_rank_is_one() -> None:
    parent = process(5, variables=env(0), links=((1, 2),))
    forked = process(6, 5, env(0), links=((1, 2),))  # the sockets are its parent's
    assert [p.pid for p in select_ranks([parent, forked], {})] == [5]
    spawner = process(7)
    ranks = [process(8, 7, links=((3, 4),)), process(9, 7, links=((4, 3),))]
    probes = {7: Probe(role="parent of the processes that it waits for")}
    assert [p.pid for p in select_ranks([spawner, *ranks], probes)] == [8, 9]


def test_the_first_rank_may_be_the_one_that_starts_the_others() -> None:
    first = process(7, variables={"MASTER_ADDR": "h", "MASTER_PORT": "1"})
    second = process(8, 7, {"MASTER_ADDR": "h", "MASTER_PORT": "1"})
    probes = {7: Probe(arguments={"RANK": "0"}), 8: Probe(arguments={"RANK": "1"})}
    assert [p.pid for p in select_ranks([first, second], probes)] == [7, 8]


def test_launchers_are_no_ranks() -> None:
    launcher = process(7, command=("python", "/venv/bin/torchrun", "train.py"))
    ours = process(6, command=("python", "-m", "allaboard", "run"))
    rank = process(8, 7, env(0))
    assert [p.pid for p in select_ranks([ours, launcher, rank], {})] == [8]


def test_ranks_by_the_word_in_which_commands_differ() -> None:
    def commands(*words: str, tail: str = "4") -> list[tuple[str, ...]]:
        return [("python", "t.py", word, tail) for word in words]

    assert ranks_by_differing_word(commands("0", "1", "2")) == [0, 1, 2]
    assert ranks_by_differing_word(commands("3", "1")) == [3, 1], "of a world of 4"
    assert ranks_by_differing_word(commands("3", "1", tail="x")) == []
    assert ranks_by_differing_word(commands("3", "7")) == []
    assert ranks_by_differing_word(commands("a", "b")) == []
    assert ranks_by_differing_word(commands("1", "1")) == []


def test_a_server_that_a_rank_has_started_is_none() -> None:
    """It has inherited the rank's variables, listens, and another rank asks it."""
    listens = Socket("127.0.0.1:700", "0.0.0.0:0", "LISTEN")
    first = process(10, variables=env(0), links=((1, 2),))
    asking = process(11, variables=env(1), links=((2, 1), (9, 700)))

    def ranks(*links: tuple[int, int], rank: int = 0, parent: TrainingProcess = first) -> list[int]:
        server = process(12, parent=10, variables=env(rank), links=((700, 9), *links))
        server = server._replace(sockets=(listens, *server.sockets))
        return [p.pid for p in select_ranks([parent, asking, server], {})]

    assert ranks() == [10, 11]
    assert ranks((701, 800)) == [10, 11], "a connection to somewhere else"
    assert ranks((3, 4), rank=1) == [10, 11, 12], "a number of its own"
    # What has connected to another rank by itself takes part, as behind a wrapper of its own number.
    asked = asking._replace(
        sockets=(*asking.sockets, Socket("127.0.0.1:6", "127.0.0.1:5", "ESTAB"))
    )
    server = process(12, parent=10, variables=env(0), links=((700, 9), (5, 6)))
    server = server._replace(sockets=(listens, *server.sockets))
    assert [p.pid for p in select_ranks([first, asked, server], {})] == [10, 11, 12]
    assert ranks(parent=first._replace(sockets=())) == [10, 11, 12], "its parent only waits for it"
