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

from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.contracts import Relations, Rule
from allaboard.facts import Address, Claim, Declared, Evidence, JobView, Member, Who
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import arrived_member, coming_member, gathering_job, sample_declaration

Clusters = list[tuple[dict[str, str], list[Member]]]
"""Each distinct cluster (task to address), with the members that have it."""


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        if roll.held_members and roll.is_settled(view.now):
            clusters = _clusters(roll)
            if clusters:
                claims = list(_task_names(view, roll, clusters)) or list(_task_addresses(clusters))
                yield from claims or _task_orders(clusters)
            yield from _rendezvous_addresses(roll)


def _task_names(view: JobView, roll: RollCall, clusters: Clusters) -> Iterator[Claim]:
    """Report TensorFlow tasks that have the same addresses under different task names: which name is right is
    unknown."""
    members_by_cluster = _members_by_cluster(clusters)
    # Without a majority: a job that `run` starts without roles has a cluster of workers only.
    without_roles = view.launched == roll.size
    majority = max(
        members_by_cluster,
        key=lambda c: (len(members_by_cluster[c]), without_roles and _workers(c)),
        default=(),
    )
    task_of = {address: task for task, address in majority}
    for cluster, members in members_by_cluster.items():
        their_tasks = {address: task for task, address in cluster}
        if their_tasks.keys() != task_of.keys() or set(their_tasks.values()) == set(
            task_of.values()
        ):
            continue
        address = next(a for a in their_tasks if their_tasks[a] != task_of[a])
        names = ", ".join(_task_of(m).replace(":", " ") for m in members)
        majority_names = ", ".join(
            _task_of(m).replace(":", " ") for m in members_by_cluster[majority][:4]
        )
        their_task, right = (
            their_tasks[address].replace(":", " "),
            task_of[address].replace(":", " "),
        )
        declaration = members[0].declared
        origin = declaration.origin if declaration is not None else ""
        yield Claim(
            summary=f"{names} has different task names in its cluster: {address} is {their_task}, "
            f"but {right} for {majority_names}",
            who=tuple(m.who for m in members),
            evidence=(
                Evidence(", ".join(sorted(their_tasks.values())), f"{origin} of {names}"),
                Evidence(", ".join(sorted(task_of.values())), f"{origin} of {majority_names}"),
            ),
            fix=f"give all workers the same cluster, with the same task names: the cluster of {names} in "
            f"{origin} differs",
            since=max(m.phase_since for m in members),
        )


def _workers(cluster: tuple[tuple[str, str], ...]) -> bool:
    return all(task.startswith("worker:") for task, _ in cluster)


def _task_addresses(clusters: Clusters) -> Iterator[Claim]:
    """Report TensorFlow tasks with several addresses. Ports must agree; host names may be aliases of one
    host."""
    members_by_address: dict[str, dict[str, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for cluster, members in clusters:
        for task, address in cluster.items():
            members_by_address[task][address] += members
    for task, addresses in members_by_address.items():
        if len({_port(a) for a in addresses}) < 2:
            continue
        # The majority is right; without one, the task itself knows where it listens.
        is_own = {a: any(_task_of(m) == task for m in ms) for a, ms in addresses.items()}
        right = max(addresses, key=lambda a: (len(addresses[a]), is_own[a]))
        for address, members in addresses.items():
            if _port(address) != _port(right):
                yield _task_claim(task, address, members, right, is_own[right])


def _clusters(roll: RollCall) -> Clusters:
    """Return each distinct cluster and the members that have it, comparing by identity first: clusters are
    long, and nearly all members share one object."""
    by_text: Clusters = []
    members_by_id: dict[int, list[Member]] = {}
    for member in roll.present:
        cluster = member.declared.cluster if member.declared else None
        if not cluster:
            continue
        if id(cluster) not in members_by_id:
            members = next((ms for c, ms in by_text if c == cluster), None)
            if members is None:
                by_text.append((cluster, members := []))
            members_by_id[id(cluster)] = members
        members_by_id[id(cluster)].append(member)
    return by_text


def _members_by_cluster(clusters: Clusters) -> dict[tuple[tuple[str, str], ...], list[Member]]:
    """Return the members of each cluster, which is given as (task, address) pairs."""
    members_by_cluster: dict[tuple[tuple[str, str], ...], list[Member]] = defaultdict(list)
    for addresses, members in clusters:
        members_by_cluster[tuple(sorted(addresses.items()))] += members
    return members_by_cluster


def _task_claim(
    task: str, wrong: str, members: list[Member], right: str, by_task_itself: bool
) -> Claim:
    names = ", ".join(_task_of(m).replace(":", " ") for m in members)
    declaration = members[0].declared
    origin = declaration.origin if declaration is not None else ""
    right_source = "it listens" if by_task_itself else "the others expect it"
    itself = names == task.replace(":", " ")
    return Claim(
        summary=f"{names} listens at {wrong}, but {right_source} at {right}"
        if itself
        else f"{names} cannot connect to {task.replace(':', ' ')}: {names} expects it at {wrong}, but "
        f"{right_source} at {right}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(f"{task} = {wrong}", f"{origin} of {names}"),
            Evidence(
                f"{task} = {right}", f"{origin} of " + (task if by_task_itself else "the others")
            ),
        ),
        fix=f"in {origin} of {names}, replace {wrong} with {right}",
        since=max(m.phase_since for m in members),
    )


def _task_orders(clusters: Clusters) -> Iterator[Claim]:
    """Report TensorFlow tasks whose addresses are swapped. An address that no other cluster has may be an
    alias."""
    members_by_cluster = _members_by_cluster(clusters)
    if len(members_by_cluster) < 2:
        return
    majority = max(
        members_by_cluster,
        key=lambda c: (len(members_by_cluster[c]), -min(m.who.rank for m in members_by_cluster[c])),
    )
    right = dict(majority)
    task_of = {address: task for task, address in majority}
    for cluster, members in members_by_cluster.items():
        moved = [(t, a) for t, a in cluster if right.get(t, a) != a and a in task_of]
        if not moved:
            continue
        task, address = moved[0]
        names = ", ".join(_task_of(m).replace(":", " ") for m in members)
        declaration = members[0].declared
        origin = declaration.origin if declaration is not None else ""
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


def _rendezvous_addresses(roll: RollCall) -> Iterator[Claim]:
    """Report PyTorch and JAX members whose rendezvous addresses have different ports."""
    counts = Counter([m.declared.place for m in roll.present if m.declared and m.declared.place])
    if len(counts) < 2 or len({_port(p) for p in counts}) < 2:
        return
    leader = next(
        (m.declared.place for m in roll.present if m.declared and m.declared.rank == 0), None
    )
    right = counts.most_common(1)[0][0]
    if len(set(counts.values())) == 1 and leader is not None:
        right = leader
    for address in counts:
        if _port(address) == _port(right):
            continue
        members = [m for m in roll.present if m.declared and m.declared.place == address]
        names = ", ".join(f"rank {m.who.rank}" for m in members)
        declaration = members[0].declared
        yield Claim(
            summary=f"{names} {'have' if len(members) > 1 else 'has'} the rendezvous address "
            f"{_as_configured(declaration, address)}, the others have {_as_configured(declaration, right)}",
            who=tuple(m.who for m in members),
            evidence=(
                Evidence(address, f"{declaration.origin if declaration else ''} of {names}"),
                Evidence(right, f"{counts[right]} others"),
            ),
            fix=f"give {names} the address {_as_configured(declaration, right)}",
            since=max(m.phase_since for m in members),
        )


def _as_configured(declaration: Declared | None, address: str) -> str:
    """Return the address as the user gives it to this framework: JAX takes host:port only."""
    jax = declaration is not None and declaration.framework == "jax"
    return address.removeprefix("tcp://") if jax else address


def _task_of(member: Member) -> str:
    return f"{member.who.job}:{member.who.index}"


def _port(address: str) -> str:
    return Address.from_endpoint(address).port


def _tf_worker(rank: int, **wrong: str) -> Member:
    cluster = {f"worker:{r}": f"127.0.0.1:2000{r}" for r in range(3)}
    cluster |= {k.replace("_", ":"): v for k, v in wrong.items()}
    declaration = sample_declaration(
        rank, framework="tensorflow", index=rank, cluster=cluster, place="", origin="TF_CONFIG"
    )
    return arrived_member(rank, declared=declaration)


def _one_of_two(rank: int, job: str, *tasks: str) -> Member:
    cluster = {t: f"a:{i}" for i, t in enumerate(tasks)}
    declaration = sample_declaration(
        rank, 2, framework="tensorflow", job=job, index=rank if job == "worker" else 0,
        cluster=cluster, place="", origin="TF_CONFIG",
    )  # fmt: skip
    identity = Who(job=job, index=declaration.index, rank=rank, host="a", pid=100 + rank)
    return arrived_member(rank, 2, who=identity, declared=declaration)


def _jax(rank: int, address: str) -> Member:
    return arrived_member(
        rank, declared=sample_declaration(rank, framework="jax", place=f"tcp://{address}")
    )


_HOSTS = {"worker_0": "a:1", "worker_1": "b:1", "worker_2": "c:1"}
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one TF_CONFIG has a wrong port for another worker": (
            gathering_job(_tf_worker(0), _tf_worker(1, worker_0="127.0.0.1:21000"), _tf_worker(2)),
            "worker 1 cannot connect to worker 0: worker 1 expects it at 127.0.0.1:21000, but it listens "
            "at 127.0.0.1:20000",
        ),
        "one task calls itself the chief, and the other knows of no chief": (
            gathering_job(
                _one_of_two(0, "chief", "chief:0", "worker:0"),
                _one_of_two(1, "worker", "worker:0", "worker:1"),
                launched=2,
            ),
            "chief 0 has different task names in its cluster: a:0 is chief 0, but worker 0 for worker 1",
        ),
        "one TF_CONFIG lists the hosts in another order": (
            gathering_job(
                _tf_worker(0, **_HOSTS),
                _tf_worker(1, **_HOSTS),
                _tf_worker(2, **_HOSTS | {"worker_0": "b:1", "worker_1": "a:1"}),
            ),
            "worker 2 has the tasks in a different order: b:1 is worker 0, but worker 1 for the others",
        ),
        "one rank has another MASTER_PORT": (
            gathering_job(
                arrived_member(0),
                arrived_member(1, declared=sample_declaration(1, place="tcp://127.0.0.1:20009")),
                arrived_member(2),
            ),
            "rank 1 has the rendezvous address tcp://127.0.0.1:20009, the others have tcp://127.0.0.1:20000",
        ),
        "one process of JAX has another coordinator_address": (
            gathering_job(*(_jax(r, f"a:{3000 + (r == 1)}") for r in range(3))),
            "rank 1 has the rendezvous address a:3001, the others have a:3000",
        ),
    },
    silent_on={
        "two clusters differ, and a third worker may join and decide the majority": gathering_job(
            _tf_worker(0), _tf_worker(1, worker_0="127.0.0.1:21000"), coming_member(2), now=61.0
        ),
        "one TF_CONFIG has an alias of a host that no other has": gathering_job(
            _tf_worker(0, **_HOSTS),
            _tf_worker(1, **_HOSTS | {"worker_1": "b.example:1"}),
            _tf_worker(2, **_HOSTS),
        ),
        "a chief and a worker with the same cluster": gathering_job(
            _one_of_two(0, "chief", "chief:0", "worker:0"),
            _one_of_two(1, "worker", "chief:0", "worker:0"),
        ),
        "all workers have the same cluster": gathering_job(
            _tf_worker(0), _tf_worker(1), _tf_worker(2)
        ),
        "one TF_CONFIG says `localhost` for 127.0.0.1": gathering_job(
            _tf_worker(0), _tf_worker(1, worker_0="localhost:20000"), _tf_worker(2)
        ),
    },
    relations=Relations(
        raised_as=r"RendezvousConnectionError: The connection to (?:the C10d store|etcd) has failed"
    ),
    retry=Retry.NEVER,
    drill=(
        "tf-wrong-port",
        "tf-order",
        "other-port",
        "order-differs",
        "port-differs",
        "ps-other-port",
    ),
)
