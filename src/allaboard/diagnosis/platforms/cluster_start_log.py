"""What launchers and collectives write of members that did not come, or fell silent: torchrun's rendezvous,
MindSpore's msrun and scheduler, and AWS Neuron's collectives (CCOM).
"""

from __future__ import annotations

import re

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Severity, Speaker, Testimony
from allaboard.facts.rank_sets import name_ranks

MESSAGES = (
    KnownMessage(
        key="NRT:nrt_infodump",
        pattern=r"NRT:nrt_infodump +Failure: (?P<why>NRT_\w{2,40}) in (?P<call>\w{3,60})\(\)",
        rule="LOG010",
        says="Neuron's runtime failed: {call} returned {why}",
        fix="read the first ERROR lines of NRT, TDRV or NMGR above: they say which graph or core; on "
        "that host: "
        "neuron-ls; neuronx-cc --version; dpkg -l | grep aws-neuronx   # compiler, runtime and driver of "
        "one release; "
        "an old graph: "
        "NEURON_COMPILE_CACHE_URL=/tmp/other-cache for one run",
        proves_not="that a core is broken: a graph for another number of ranks or another release is "
        "refused alike",
        explains=("LOG012",),
        sample="2025-Jun-28 22:19:15.506590  8652:8728  ERROR   NRT:nrt_infodump             Failure: "
        "NRT_INVALID in "
        "nrt_load()",
        source="its wording from users' reports of AWS Neuron 2.14 to 2.23",
    ),
    KnownMessage(
        key="Time out nodes are ",
        pattern=r"Time out nodes are \[(?P<nodes>'?\d[^\]\n]{0,200})\]",
        rule="LOG002",
        says="MindSpore's scheduler got no heartbeat of the nodes [{nodes}] any more, and ended the job",
        fix="tail -n 60 worker_N.log   # N is the number of that node: did it end before, or was it "
        "only busy? On its host: dmesg -T | grep -i kill; npu-smi info",
        proves_not="that it crashed: one that is stuck in a compilation sends none either",
        explains=("LOG012",),
        sample="[ERROR] ME(162078:2814,MainProcess):2025-03-10-09:40:38.722.000 "
        "[mindspore/parallel/cluster/process_entity/_api.py:431] Time out nodes are ['3']",
        source="its wording from the source of MindSpore 2.3 to 2.6 (process_entity/_api.py)",
    ),
    KnownMessage(
        key=" exit with exception.",
        pattern=r"_api\.py:\d+\] Worker process (?P<pid>\d{1,9}) exit with exception",
        rule="EXIT003",
        says="a worker of MindSpore (pid {pid}) failed, and msrun ended the others",
        fix="grep -lE 'Error|Traceback' worker_*.log   # in the folder of --log_dir: its own log says why",
        bare_end=True,
        sample="[ERROR] ME(130371:2814,MainProcess):2024-12-26-14:22:26.839.923 "
        "[mindspore/parallel/cluster/process_entity/_api.py:268] Worker process 130673 exit with exception.",
        source="its wording from the source of MindSpore 2.3 to 2.6 (process_entity/_api.py)",
    ),
)
_NEURON_WAIT = re.compile(
    r"CCOM WARN Timeout waiting for RX \(waited (?P<seconds>\d{1,6}) sec\) - retrying"
    r"(?:, \[\w{1,40}, rank: (?P<rank>\d{1,7})/(?P<size>\d{1,7}))?"
)
_NEURON = "CCOM WARN Timeout waiting for "
_NO_EFA = re.compile(
    r"CCOM WARN (?:NET/OFI )?(?P<why>OFI plugin initNet\(\) failed|aws-ofi-nccl initialization failed)"
)
"""What Neuron's collectives write of AWS's plug-in for the adapters between hosts (EFA)."""
_EFA_FIX = (
    "fi_info -p efa   # on each host: no adapter? An instance type with EFA, its driver, /dev/infiniband in "
    "the container; one host alone needs none; then "
)
_TORCHRUN_WAIT = "] Rendezvous'ing worker group"
_LAUNCH_CONFIG = re.compile(
    r"^\s*(?P<name>min_nodes|rdzv_endpoint|rdzv_backend)\s*: (?P<value>\S{1,200})\s*$", re.MULTILINE
)
MAX_LINES_AFTER = 8
"""Lines that may follow a rendezvous that still waits: what the node says of its own part in it."""
_OF_RENDEZVOUS = re.compile(
    r"^\s*$|^```|rendezvous|socket\.cpp|\[c10d\]|log directory set|Setting OMP_NUM_THREADS|^\**$",
    re.I,
)
MIN_STEPS_AFTER = 2
"""Lines about loss or steps after a wait that show that it is over."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = (
        *find_known_messages(exhibit, MESSAGES),
        *_neuron_wait(exhibit),
        *_torchrun_wait(exhibit),
    )
    return Testimony(heard=heard) if heard else None


def _neuron_wait(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return that ranks of Neuron still wait for the others as their log ends."""
    text = exhibit.text
    waits = list(_NEURON_WAIT.finditer(text)) if _NEURON in text else []
    if not waits or exhibit.trained_after or trains_on_after(text, _NEURON, MIN_STEPS_AFTER):
        return ()
    last_wait = waits[-1]
    ranks = {int(m["rank"]) for m in waits if m["rank"]}
    sizes = {int(m["size"]) for m in waits if m["size"]}
    subject = (
        f"{name_ranks(ranks)} of {max(sizes)} {'wait' if len(ranks) > 1 else 'waits'}"
        if ranks and sizes
        else "a rank of Neuron waits"
    )
    place = exhibit.place_of_line(text.count("\n", 0, last_wait.start()))
    no_adapter = _NO_EFA.search(text)
    says = (
        f"{subject} for the others at the start of Neuron's collectives, for "
        f"{last_wait['seconds']} s when the log ends"
    )
    if no_adapter is not None:
        says += f", and its network between hosts did not start: {no_adapter['why']}"
    return (
        Heard(
            rule="JOIN004",
            says=says,
            speakers=(Speaker(exhibit.rank, last_wait[0][:300], place, exhibit.pid),),
            fix=(_EFA_FIX if no_adapter is not None else "")
            + "pgrep -af python | wc -l   # on each host: do as many processes run as ranks? "
            "NEURON_RT_ROOT_COMM_ID=HOST:PORT of rank 0's host, the same on all; several hosts: fi_info -p "
            "efa, FI_PROVIDER=efa, and a security group that lets all through within itself",
            proves_not="which rank did not come, nor that it will not",
            severity=Severity.WARNING,
            awaits=True,
        ),
    )


def _torchrun_wait(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return that a torchrun still waits for the other hosts as its log ends."""
    text = exhibit.text
    begin = text.rfind(_TORCHRUN_WAIT)
    lines = text[begin:].split("\n")[1:] if begin >= 0 else []
    if (
        begin < 0
        or len(lines) > MAX_LINES_AFTER
        or not all(map(_OF_RENDEZVOUS.search, lines))
        or any("complete" in line or "rror" in line or "timed out" in line for line in lines)
    ):
        return ()
    config = {m["name"]: m["value"] for m in _LAUNCH_CONFIG.finditer(text)}
    nodes = config.get("min_nodes", "")
    if nodes == "1":
        return ()
    endpoint = config.get("rdzv_endpoint", "")
    number = text.count("\n", 0, begin)
    return (
        Heard(
            rule="JOIN001",
            says="torchrun waits for the other hosts when its log ends"
            + (f": {nodes} of them must come" if nodes else "")
            + (f" to {endpoint}" if endpoint else ""),
            speakers=(
                Speaker(
                    exhibit.rank,
                    text.split("\n")[number].strip()[:300],
                    exhibit.place_of_line(number),
                    exhibit.pid,
                ),
            ),
            fix="start torchrun on every host with the same --nnodes, --rdzv-id and --rdzv-endpoint (or the "
            "same --master-addr, and --node-rank 0 to N-1); allaboard preflight, started as the job is, "
            "names who is missing",
            proves_not="that others do not come: a log that was copied early looks the same",
            severity=Severity.WARNING,
            awaits=True,
        ),
    )


READER = LogReader(read=read_log)
