"""What a host drill must be: one fault between hosts of a test bed, and what must be reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from testbed import Bed

MEETING_PORT = 29500
"""Where the jobs of host drills meet, on the first host; TensorFlow's tasks listen on it on each."""


class HostDrill(msgspec.Struct, frozen=True, kw_only=True):
    """One fault between hosts, staged on a real framework: a namespace each host, one worker on each,
    so that host 2 has rank 2. Each runs ``allaboard run OPTIONS SCRIPT`` by itself, as under a launcher.

    Attributes:
        framework: how the hosts' environment describes the cluster, and which job runs.
        expects: the rule that must name the fault; "" for a healthy start, of which nothing is said.
        hosts: how many.
        blames: the hosts that the finding must name.
        on: the hosts whose report must have the finding; all that live where it is left out.
        arrange: done to the bed before the start: firewall, names, cables, programs in the way.
        then: done to it once every worker has trained some steps; the time runs from there.
        roles: the task of each host in a job with parameter servers, those that train first.
        environment: what the workers of a host (its number) get instead of the usual environment.
        arguments: further arguments of the script.
        faults: host to the ``--fault`` that its script gets.
        scripts: host to another script than the job's, a file of ``drills/jobs``.
        late: host to the seconds by which it starts later.
        absent: hosts where nothing is started.
        plain: hosts that start the script without allaboard.
        options: options of ``allaboard run``; ``other_options``: those of hosts that get others.
        exit_codes: those that ``allaboard run`` may end with, on any host.
        ends: whether the runs end by themselves; else they are ended once the fault is named.
        within: seconds from the last arrival of a worker to the finding, at the most.
        bound: seconds from there to the end of the last run, at the most; 0 where none is asked for.
        says: a pattern (re) that the output of every host that must be told has to match.
        allowed: further rules that may speak too.
        needs: what the machine must have; see ``testbed.missing``.
        long: why the tests stage it in their long run only; "" where they always do.
    """

    framework: Literal["torch", "tensorflow", "jax"]
    expects: str
    hosts: int = 4
    blames: tuple[int, ...] = ()
    on: tuple[int, ...] = ()
    arrange: Callable[[Bed], object] | None = None
    then: Callable[[Bed], object] | None = None
    roles: tuple[str, ...] = ()
    environment: Callable[[int, dict[str, str]], dict[str, str]] | None = None
    arguments: tuple[str, ...] = ()
    faults: Mapping[int, str] = {}
    scripts: Mapping[int, str] = {}
    late: Mapping[int, float] = {}
    absent: tuple[int, ...] = ()
    plain: tuple[int, ...] = ()
    options: tuple[str, ...] = ("--timeout", "10")
    other_options: Mapping[int, tuple[str, ...]] = {}
    exit_codes: tuple[int, ...] = (3,)
    ends: bool = True
    within: float = 5.0
    bound: float = 0.0
    says: str = ""
    allowed: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    long: str = ""
