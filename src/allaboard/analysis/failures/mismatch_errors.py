"""Exceptions that say that the members of one collective did not call the same operation.

The wording is that of TensorFlow 2.21 (its collective parameter resolver and executors), of gloo
(transport/tcp/pair.cc), which PyTorch and JAX use on CPUs, and of PyTorch 1.10 to 2.13 with
TORCH_DISTRIBUTED_DEBUG=DETAIL (ProcessGroupWrapper.cpp), as they print them.
"""

from __future__ import annotations

import re

from allaboard.facts import Member
from allaboard.late_pattern import compile_late

_DTYPE_NAMES = {
    "1": "float32", "2": "float64", "3": "int32", "4": "uint8", "6": "int8", "7": "string",
    "9": "int64", "10": "bool", "14": "bfloat16", "19": "float16",
}  # fmt: skip
"""Names of the numbers of data types in tensorflow/core/framework/types.proto."""
_OPERATION_NAMES = {"0": "a reduction", "1": "a broadcast", "2": "a gather", "3": "a permutation",
               "4": "an all-to-all", "5": "a reduce-scatter"}  # fmt: skip
"""Names of the numbers of CollectiveType in tensorflow/core/framework/collective.h."""
_KIND_MISMATCH = compile_late(
    r"Collective instance (\d+) expected type (\d+) and data[_ ]type (\w+) but got type (\d+) and "
    r"data[_ ]type (\w+)"
)
_SHAPE_MISMATCH = compile_late(
    r"Shape mismatch in the collective instance (\d+)\. Op at device \S+ expected shape (\[[\d,]*\]) but "
    r"another member in the group expected shape (\[[\d,]*\])"
)
_SIZE_MISMATCH = compile_late(
    r"op\.preamble\.length <= op\.nbytes\. (\d+) vs (\d+)|Received data size doesn't match expected size"
)
_FINGERPRINT = r"CollectiveFingerPrint\((?P<{0}>[^()\n]{{1,400}})"
_RANKS_MISMATCH = compile_late(
    r"Detected mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running (?:inconsistent )?"
    r"collective: "
    + _FINGERPRINT.format("own")
    + r"(?:.{0,400}?\bbut Rank (?P<peer>\d+) is running "
    r"(?:inconsistent )?collective: (?:" + _FINGERPRINT.format("others") + r"|(?P<name>[A-Z_]+)))?",
    re.DOTALL,
)
_HOROVOD_MISMATCH = compile_late(
    r"Mismatched (?P<what>[\w/ ]{1,60}): (?P<one>One rank [^\n]{1,200}?),? but another rank "
    r"(?P<other>[^\n]{1,200}?)\.(?:\s|$)"
)
"""What Horovod writes of a tensor that ranks submitted with another operation, type, shape, root or device
(Horovod 0.9 to 0.28, controller.cc)."""
_RING_MISMATCH = compile_late(
    r"Incompatible shapes: (?P<one>\[[\d,]*\]) vs\. (?P<other>\[[\d,]*\])"
    r"(?=.{0,600}?CollectiveReduce)",
    re.DOTALL,
)
"""What TensorFlow's ring makes of parts of different size."""
_TRUNCATED = compile_late(
    r"MPI_ERR_TRUNCATE|Message truncated; (?P<came>\d+) bytes received but buffer size is (?P<want>\d+)"
)
"""What Open MPI and MPICH (3 to 4.3) raise where a message is longer than its receiver expected."""
_BARRIER_MISMATCH = compile_late(
    r"Conflicting tasks specified by different processes for the same barrier|No tasks were specified by the "
    r"client, which implies|A non-participating task \([^)\n]{1,80}\) called the barrier"
)
"""What XLA's coordination service answers to other lists of participants (JAX 0.4.30 to 0.10)."""
_OTHER_BARRIER = compile_late(r"sync_global_devices name mismatch \('(?P<name>[^'\n]{1,120})'\)")
"""What JAX raises where hosts come to barriers of different names (multihost_utils, JAX 0.2 to 0.10)."""
_FINGERPRINT_FIELD = compile_late(
    r"(SequenceNumber|OpType|TensorShape)=(\[[\d, ]*\]|\w+?)(?=OpType|[,)]|$)"
)


def find_mismatch_error(member: Member) -> str | None:
    """Return what the members called: "a reduction of int64, and a reduction of float32".

    Return None if the member did not end by such an exception.
    """
    if member.raised is not None:
        return describe_mismatch_error(member.raised.message)
    return describe_mismatch_error(member.exit.last_line) if member.exit is not None else None


def barrier_name(member: Member) -> str:
    """Return the name of the barrier of JAX to which the member came, if it ended because others came to one
    of another name; else ""."""
    message = member.raised.message if member.raised is not None else ""
    match = _OTHER_BARRIER.search(message)
    return match["name"] if match else ""


def describe_mismatch_error(text: str) -> str | None:
    """Return what the members called according to this message; None if it is about something else."""
    if match := _KIND_MISMATCH.search(text):
        _, operation, kind, other_operation, other_kind = match.groups()
        return (
            f"{_describe_call(operation, kind)}, and {_describe_call(other_operation, other_kind)}"
        )
    if match := _SHAPE_MISMATCH.search(text):
        return f"a collective of shape {match[2]}, and one of shape {match[3]}"
    if match := _HOROVOD_MISMATCH.search(text):
        return f"{match['one'][:1].lower()}{match['one'][1:]}, and another {match['other']}"
    if match := _RING_MISMATCH.search(text):
        return f"a reduction of shape {match['one']}, and one of shape {match['other']}"
    if match := _RANKS_MISMATCH.search(text):
        return _describe_fingerprints(match)
    if match := _SIZE_MISMATCH.search(text):
        sizes = f": {match[2]} bytes were expected, {match[1]} came" if match[1] else ""
        return f"collectives of different sizes{sizes}"
    if match := _TRUNCATED.search(text):
        sizes = (
            f": {match['want']} bytes were expected, {match['came']} came" if match["came"] else ""
        )
        return f"a message of MPI was longer than its receiver expected{sizes}"
    if match := _OTHER_BARRIER.search(text):
        return f"one host came to the barrier '{match['name']}', and another one to a different barrier"
    if _BARRIER_MISMATCH.search(text):
        return "they gave other lists of participants for one barrier"
    return None


def _describe_fingerprints(match: re.Match[str]) -> str:
    fields = dict(_FINGERPRINT_FIELD.findall(match["own"]))
    own_call = f"rank {match['rank']} called {_describe_fingerprint(fields)}"
    if match["peer"] is None:
        return f"{own_call}, and another rank something else"
    peer_fields = dict(_FINGERPRINT_FIELD.findall(match["others"] or f"OpType={match['name']}"))
    peer_call = f"rank {match['peer']} {_describe_fingerprint(peer_fields)}"
    if (
        fields.get("SequenceNumber") != peer_fields.get("SequenceNumber")
        and "SequenceNumber" in peer_fields
    ):
        numbers = (
            f" (its collectives {fields['SequenceNumber']} and {peer_fields['SequenceNumber']})"
        )
        return (
            f"{own_call}, and {peer_call}{numbers}"
            if "SequenceNumber" in fields
            else f"{own_call}, and {peer_call}"
        )
    return f"{own_call}, and {peer_call}"


def _describe_fingerprint(fields: dict[str, str]) -> str:
    shape = f" of {fields['TensorShape']}" if "TensorShape" in fields else ""
    return f"{fields.get('OpType', 'a collective')}{shape}"


def _describe_call(operation: str, kind: str) -> str:
    return (
        f"{_OPERATION_NAMES.get(operation, f'type {operation}')} of {_DTYPE_NAMES.get(kind, kind)}"
    )
