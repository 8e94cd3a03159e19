"""What Ray, Tune and vLLM write while they wait for resources that the cluster lacks, or has none free."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.analysis.log_ends.error_records import is_at_work
from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Severity, Speaker, Testimony

_FIX = (
    "ray status   # the resources of the cluster, and those in use; on a node that is missing: ray start "
    "--address=HEAD:6379 --num-gpus=N"
)
_SOURCE = "its wording from the source of Ray 1.0 to 2.50 (autoscaler, tune)"
MESSAGES = (
    KnownMessage(
        key="cannot be scheduled right now: ",
        pattern=r"[Tt]he following resource request cannot be scheduled right now: "
        r"\{(?P<what>[^}\n]{1,200})\}",
        rule="JOIN001",
        says="Ray has no room for {what} when the log ends: other actors hold the cluster's resources",
        fix=_FIX + "; ray list actors --filter state=ALIVE: is one left over from an earlier run?",
        proves_not="that it stays so: Ray places it when resources are free, or nodes are added",
        awaits=True,
        severity=Severity.WARNING,
        sample="(autoscaler +1m12s) Warning: The following resource request cannot be scheduled right now: "
        "{'GPU': 8.0, 'CPU': 9.0}. This is likely due to all cluster resources being claimed by actors.",
        source=_SOURCE,
    ),
    KnownMessage(
        key="No available node types can fulfill",
        pattern=r"No available node types can fulfill resource requests? \{(?P<what>[^}\n]{1,200})\}",
        rule="JOIN001",
        says="no kind of node that Ray's cluster may start has {what}: whoever asked for it waits for ever",
        fix=_FIX
        + "; a placement of one bundle is on one node: ask for less a worker, or for larger nodes",
        awaits=True,
        severity=Severity.WARNING,
        sample="(autoscaler +12s) Error: No available node types can fulfill resource request {'GPU': "
        "16.0}. Add suitable node types to this cluster to resolve this issue.",
        source=_SOURCE,
    ),
    KnownMessage(
        key=" per trial, but the cluster only has ",
        pattern=r"You asked for (?P<want>[\d.]+ cpu and [\d.]+ gpu) per trial, but the cluster only has "
        r"(?P<have>[\d.]+ cpu and [\d.]+ gpu)",
        rule="JOIN001",
        says="a trial asks for {want}, and Ray's cluster has {have}: it is never started",
        fix=_FIX + "; fewer workers, or fewer resources a worker (ScalingConfig)",
        proves_not="that it stays so where nodes are still being added",
        awaits=True,
        severity=Severity.WARNING,
        sample="WARNING insufficient_resources_manager.py:128 -- Ignore this message if the cluster is "
        "autoscaling. You asked for 9.0 cpu and 8.0 gpu per trial, but the cluster only has 64.0 cpu and "
        "4.0 gpu.",
        source=_SOURCE,
    ),
)
MAX_LINES_AFTER = 12
"""Lines that may follow such a message at the end of a log: tips, and the tables of Tune."""
_KEY = "Waiting for creating a placement group of specs for "
_WAIT = re.compile(
    re.escape(_KEY) + r"(?P<seconds>\d{1,6}) seconds\. specs=(?P<specs>\[[^\]\n]{1,8000}\])"
)
_GPUS = re.compile(r"'GPU': (?P<count>\d+(?:\.\d+)?)")
_NODE = re.compile(r"'node:(?P<node>[\w.:-]{1,100})'")
_MORE = re.compile(
    r"\s*$|```|[^\n]{0,90}?(?:Waiting for creating|The number of required GPUs|exceeds available GPUs"
    r"|\(autoscaler )"
)
"""Lines that are written in the same wait, and the end of a pasted block."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    """Return the wait for Ray's resources with which the log ends."""
    if exhibit.trained_after:
        return None
    heard = tuple(_vllm_wait(exhibit)) or tuple(
        h
        for message in MESSAGES
        if message.key in exhibit.text and _is_at_end(exhibit.text, message.key)
        for h in find_known_messages(exhibit, (message,))[-1:]
    )
    return Testimony(heard=heard) if heard else None


def _is_at_end(text: str, key: str) -> bool:
    """Return True if little follows the last place of a message, and nothing of a training."""
    later = [line for line in text[text.rfind(key) :].split("\n")[1:] if line.strip()]
    return (
        len(later) <= MAX_LINES_AFTER
        and not is_at_work(later)
        and not trains_on_after(text, key, 1)
        and not any("RUNNING" in line or "started" in line for line in later)
    )


def _vllm_wait(exhibit: Exhibit) -> Iterator[Heard]:
    text = exhibit.text
    begin = text.rfind(_KEY)
    match = _WAIT.search(text, begin) if begin >= 0 else None
    if match is None or not all(map(_MORE.match, text[match.end() :].split("\n")[1:])):
        return
    gpu_count = sum(float(m["count"]) for m in _GPUS.finditer(match["specs"]))
    nodes = sorted({m["node"] for m in _NODE.finditer(match["specs"])})
    is_bound = len(nodes) == 1
    bound_text = f", one of them on {nodes[0]}," if is_bound else ""
    number = text.count("\n", 0, match.start())
    line = text.split("\n")[number].strip()
    yield Heard(
        rule="JOIN001",
        says=f"Ray has had no room for {gpu_count:g} GPUs{bound_text} for {match['seconds']} s when the log "
        "ends: the cluster has fewer, others hold them, or a node has not joined",
        speakers=(Speaker(exhibit.rank, line[:300], exhibit.place_of_line(number), exhibit.pid),),
        fix=_FIX
        + (
            f"; does ray list nodes show {nodes[0]}? Else VLLM_HOST_IP is not its address in Ray"
            if is_bound
            else ""
        ),
        proves_not="which node is missing: Ray counts, it expects no names",
        awaits=True,
    )


READER = LogReader(read=read_log)
