"""The workers are configured with different addresses to meet at.

## Why it matters
TensorFlow's workers wait forever for a peer at an address where nothing listens, and its leader blames the
worker that it does not hear from, which is the wrong one. PyTorch's rank 0 counts `1/2 clients`. Each worker
has its own description of the cluster, and only a comparison shows which one is wrong.

## What to do
Correct the address in the configuration of the worker that differs from the majority (or in all others, if
the majority is wrong). The finding gives the value, the worker and where the value came from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from allaboard.analysis.roll_call.roll_call import Roll, roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Claim, Declared, Evidence, JobView, Member, Stage, Who
from allaboard.facts.samples import coming, declared, gathering, held

Clusters = list[tuple[dict[str, str], list[Member]]]


def check(view: JobView) -> Iterator[Claim]:
    for roll in roll_calls(view):
        if roll.held and roll.settled(view.now):
            clusters = _clusters(roll)
            if clusters:
                found = list(_names(view, roll, clusters)) or list(_tasks(clusters))
                yield from found or _orders(clusters)
            yield from _places(roll)


def _names(view: JobView, roll: Roll, clusters: Clusters) -> Iterator[Claim]:
    """Report TensorFlow tasks that have the same addresses under different task names: which name is right is
    unknown."""
    told = _told(clusters)
    # Without a majority: a job that `run` starts without roles has a cluster of workers only.
    plain = view.launched == roll.size
    usual = max(told, key=lambda c: (len(told[c]), plain and _workers(c)), default=())
    task_of = {address: task for task, address in usual}
    for cluster, members in told.items():
        there = {address: task for task, address in cluster}
        if there.keys() != task_of.keys() or set(there.values()) == set(task_of.values()):
            continue
        address = next(a for a in there if there[a] != task_of[a])
        names = ", ".join(_name(m).replace(":", " ") for m in members)
        others = ", ".join(_name(m).replace(":", " ") for m in told[usual][:4])
        here, right = there[address].replace(":", " "), task_of[address].replace(":", " ")
        first = members[0].declared
        origin = first.origin if first is not None else ""
        yield Claim(
            summary=f"{names} has different task names in its cluster: {address} is {here}, but {right} for "
            f"{others}",
            who=tuple(m.who for m in members),
            evidence=(
                Evidence(", ".join(sorted(there.values())), f"{origin} of {names}"),
                Evidence(", ".join(sorted(task_of.values())), f"{origin} of {others}"),
            ),
            fix=f"give all workers the same cluster, with the same task names: the cluster of {names} in "
            f"{origin} differs",
            since=max(m.phase_since for m in members),
        )


def _workers(cluster: tuple[tuple[str, str], ...]) -> bool:
    return all(task.startswith("worker:") for task, _ in cluster)


def _tasks(clusters: Clusters) -> Iterator[Claim]:
    """Report TensorFlow tasks with several addresses. Ports must agree; host names may be aliases of one
    host."""
    said: dict[str, dict[str, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for cluster, members in clusters:
        for task, address in cluster.items():
            said[task][address] += members
    for task, addresses in said.items():
        if len({_port(a) for a in addresses}) < 2:
            continue
        # The majority is right; without one, the task itself knows where it listens.
        own = {a: any(_name(m) == task for m in ms) for a, ms in addresses.items()}
        right = max(addresses, key=lambda a: (len(addresses[a]), own[a]))
        for address, members in addresses.items():
            if _port(address) != _port(right):
                yield _task_claim(task, address, members, right, own[right])


def _clusters(roll: Roll) -> Clusters:
    """Return each distinct cluster and the members that have it, comparing by identity first: clusters are
    long, and nearly all members share one object."""
    by_text: Clusters = []
    known: dict[int, list[Member]] = {}
    for member in roll.here:
        cluster = member.declared.cluster if member.declared else None
        if not cluster:
            continue
        if id(cluster) not in known:
            same = next((ms for c, ms in by_text if c == cluster), None)
            if same is None:
                by_text.append((cluster, same := []))
            known[id(cluster)] = same
        known[id(cluster)].append(member)
    return by_text


def _told(clusters: Clusters) -> dict[tuple[tuple[str, str], ...], list[Member]]:
    """Return the members of each cluster, which is given as (task, address) pairs."""
    told: dict[tuple[tuple[str, str], ...], list[Member]] = defaultdict(list)
    for addresses, those in clusters:
        told[tuple(sorted(addresses.items()))] += those
    return told


def _task_claim(task: str, wrong: str, members: list[Member], right: str, own: bool) -> Claim:
    names = ", ".join(_name(m).replace(":", " ") for m in members)
    told = members[0].declared
    origin = told.origin if told is not None else ""
    where = "it listens" if own else "the others expect it"
    itself = names == task.replace(":", " ")
    return Claim(
        summary=f"{names} listens at {wrong}, but {where} at {right}"
        if itself
        else f"{names} cannot connect to {task.replace(':', ' ')}: {names} expects it at {wrong}, but "
        f"{where} at {right}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(f"{task} = {wrong}", f"{origin} of {names}"),
            Evidence(f"{task} = {right}", f"{origin} of " + (task if own else "the others")),
        ),
        fix=f"in {origin} of {names}, replace {wrong} with {right}",
        since=max(m.phase_since for m in members),
    )


def _orders(clusters: Clusters) -> Iterator[Claim]:
    """Report TensorFlow tasks whose addresses are swapped. An address that no other cluster has may be an
    alias."""
    told = _told(clusters)
    if len(told) < 2:
        return
    usual = max(told, key=lambda c: (len(told[c]), -min(m.who.rank for m in told[c])))
    right = dict(usual)
    task_of = {address: task for task, address in usual}
    for cluster, members in told.items():
        moved = [(t, a) for t, a in cluster if right.get(t, a) != a and a in task_of]
        if not moved:
            continue
        task, address = moved[0]
        names = ", ".join(_name(m).replace(":", " ") for m in members)
        first = members[0].declared
        origin = first.origin if first is not None else ""
        yield Claim(
            summary=f"{names} has the tasks in a different order: {address} is "
            f"{task.replace(':', ' ')}, but {task_of[address].replace(':', ' ')} for the others",
            who=tuple(m.who for m in members),
            evidence=(
                Evidence(f"{task} = {address}", f"{origin} of {names}"),
                Evidence(f"{task} = {right[task]}", f"{origin} of the others"),
            ),
            fix=f"give {names} the same cluster as the others, in the same order",
            since=max(m.phase_since for m in members),
        )


def _places(roll: Roll) -> Iterator[Claim]:
    """Report PyTorch and JAX members whose rendezvous addresses have different ports."""
    places = Counter([m.declared.place for m in roll.here if m.declared and m.declared.place])
    if len(places) < 2 or len({_port(p) for p in places}) < 2:
        return
    leader = next(
        (m.declared.place for m in roll.here if m.declared and m.declared.rank == 0), None
    )
    right = places.most_common(1)[0][0]
    if len(set(places.values())) == 1 and leader is not None:
        right = leader
    for place in places:
        if _port(place) == _port(right):
            continue
        members = [m for m in roll.here if m.declared and m.declared.place == place]
        names = ", ".join(f"rank {m.who.rank}" for m in members)
        told = members[0].declared
        yield Claim(
            summary=f"{names} {'have' if len(members) > 1 else 'has'} the rendezvous address "
            f"{_typed(told, place)}, "
            f"the others have {_typed(told, right)}",
            who=tuple(m.who for m in members),
            evidence=(
                Evidence(place, f"{told.origin if told else ''} of {names}"),
                Evidence(right, f"{places[right]} others"),
            ),
            fix=f"give {names} the address {_typed(told, right)}",
            since=max(m.phase_since for m in members),
        )


def _typed(told: Declared | None, place: str) -> str:
    """Return the address as the user gives it to this framework: JAX takes host:port only."""
    jax = told is not None and told.framework == "jax"
    return place.removeprefix("tcp://") if jax else place


def _name(member: Member) -> str:
    return f"{member.who.job}:{member.who.index}"


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _tf(rank: int, **wrong: str) -> Member:
    cluster = {f"worker:{r}": f"127.0.0.1:2000{r}" for r in range(3)}
    cluster |= {k.replace("_", ":"): v for k, v in wrong.items()}
    told = declared(
        rank, framework="tensorflow", index=rank, cluster=cluster, place="", origin="TF_CONFIG"
    )
    return held(rank, declared=told)


def _two(rank: int, job: str, *tasks: str) -> Member:
    cluster = {t: f"a:{i}" for i, t in enumerate(tasks)}
    told = declared(
        rank, 2, framework="tensorflow", job=job, index=rank if job == "worker" else 0,
        cluster=cluster, place="", origin="TF_CONFIG",
    )  # fmt: skip
    who = Who(job=job, index=told.index, rank=rank, host="a", pid=100 + rank)
    return held(rank, 2, who=who, declared=told)


def _jax(rank: int, place: str) -> Member:
    return held(rank, declared=declared(rank, framework="jax", place=f"tcp://{place}"))


_HOSTS = {"worker_0": "a:1", "worker_1": "b:1", "worker_2": "c:1"}
RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "one port wrong in one TF_CONFIG": (
            gathering(_tf(0), _tf(1, worker_0="127.0.0.1:21000"), _tf(2)),
            "worker 1 cannot connect to worker 0: worker 1 expects it at 127.0.0.1:21000, but it listens "
            "at 127.0.0.1:20000",
        ),
        "one calls itself the chief": (
            gathering(
                _two(0, "chief", "chief:0", "worker:0"),
                _two(1, "worker", "worker:0", "worker:1"),
                launched=2,
            ),
            "chief 0 has different task names in its cluster: a:0 is chief 0, but worker 0 for worker 1",
        ),
        "hosts in another order": (
            gathering(
                _tf(0, **_HOSTS),
                _tf(1, **_HOSTS),
                _tf(2, **_HOSTS | {"worker_0": "b:1", "worker_1": "a:1"}),
            ),
            "worker 2 has the tasks in a different order: b:1 is worker 0, but worker 1 for the others",
        ),
        "another MASTER_PORT": (
            gathering(
                held(0), held(1, declared=declared(1, place="tcp://127.0.0.1:20009")), held(2)
            ),
            "rank 1 has the rendezvous address tcp://127.0.0.1:20009, the others have "
            "tcp://127.0.0.1:20000",
        ),
        "another coordinator_address": (
            gathering(*(_jax(r, f"a:{3000 + (r == 1)}") for r in range(3))),
            "rank 1 has the rendezvous address a:3001, the others have a:3000",
        ),
    },
    silent_on={
        "one more may join and decide the majority": gathering(
            _tf(0), _tf(1, worker_0="127.0.0.1:21000"), coming(2), now=61.0
        ),
        "an alias that no other member uses": gathering(
            _tf(0, **_HOSTS), _tf(1, **_HOSTS | {"worker_1": "b.example:1"}), _tf(2, **_HOSTS)
        ),
        "a chief and a worker": gathering(
            _two(0, "chief", "chief:0", "worker:0"), _two(1, "worker", "chief:0", "worker:0")
        ),
        "one cluster": gathering(_tf(0), _tf(1), _tf(2)),
        "another name for the same host": gathering(
            _tf(0), _tf(1, worker_0="localhost:20000"), _tf(2)
        ),
    },
    since="0.1",
    drill=(
        "tf-wrong-port",
        "tf-order",
        "other-port",
        "order-differs",
        "port-differs",
        "ps-other-port",
    ),
)
