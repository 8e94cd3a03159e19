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
    """One fault between hosts, staged on a real framework.

    Each host is a namespace with one worker, so that host 2 has rank 2. Each runs
    ``allaboard run OPTIONS SCRIPT`` by itself, as under a launcher.
    """

    title: str
    """One sentence: what is wrong between the hosts."""
    framework: Literal["torch", "tensorflow", "jax"]
    """How the hosts' environment describes the cluster, and which job runs."""
    expects: str
    """The rule that must name the fault; "" for a healthy start, of which nothing is said."""
    hosts: int = 4
    """How many."""
    blames: tuple[int, ...] = ()
    """The hosts that the finding must name."""
    on: tuple[int, ...] = ()
    """The hosts whose report must have the finding; all that live where it is left out."""
    arrange: Callable[[Bed], object] | None = None
    """Done to the bed before the start: firewall, names, cables, programs in the way."""
    then: Callable[[Bed], object] | None = None
    """Done to it once every worker has trained some steps; the time runs from there."""
    roles: tuple[str, ...] = ()
    """The task of each host in a job with parameter servers, those that train first."""
    environment: Callable[[int, dict[str, str]], dict[str, str]] | None = None
    """What the workers of a host (its number) get instead of the usual environment."""
    arguments: tuple[str, ...] = ()
    """Further arguments of the script."""
    faults: Mapping[int, str] = {}
    """Host to the ``--fault`` that its script gets."""
    scripts: Mapping[int, str] = {}
    """Host to another script than the job's, a file of ``drills/jobs``."""
    late: Mapping[int, float] = {}
    """Host to the seconds by which it starts later."""
    absent: tuple[int, ...] = ()
    """Hosts where nothing is started."""
    plain: tuple[int, ...] = ()
    """Hosts that start the script without allaboard."""
    options: tuple[str, ...] = ("--timeout", "10")
    """Options of ``allaboard run``; ``other_options``: those of hosts that get others."""
    other_options: Mapping[int, tuple[str, ...]] = {}
    exit_codes: tuple[int, ...] = (3,)
    """Those that ``allaboard run`` may end with, on any host."""
    ends: bool = True
    """Whether the runs end by themselves; else they are ended once the fault is named."""
    within: float = 5.0
    """Seconds from the last arrival of a worker to the finding, at the most."""
    bound: float = 0.0
    """Seconds from there to the end of the last run, at the most; 0 where none is asked for."""
    says: str = ""
    """A pattern (re) that the output of every host that must be told has to match."""
    allowed: tuple[str, ...] = ()
    """Further rules that may speak too."""
    needs: tuple[str, ...] = ()
    """What the machine must have; see ``testbed.missing``."""
    long: str = ""
    """Why the tests stage it in their long run only; "" where they always do."""
