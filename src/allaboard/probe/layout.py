"""How a black box is laid out: where its records are, and how a text is written and read.

In the byte order of its host, version 6:

====== ======= ==============================================================================
offset size    content
====== ======= ==============================================================================
0      128     header: magic, version, pid, start ticks, birth, main thread, signal and fd of stacks
128    64      written by the agent: its heartbeat (s), rounds let through, verdict (0 none, 1 end)
192    64      phase, since (s), round of init
256    64      steps done, time of the last (s); seconds of all steps in which the main thread waited
               for data, and for other members; the last finite loss at the end of that step (NaN:
               none was seen)
320    64      the values that backward began from: how many, how many not finite in a row, the step
               of the first of these, its value
384    64      memory on an accelerator, as the framework counts it: see `MEMORY`
1024   2048    16 thread slots of 128: see `OP`; at 112 of a slot: the thread
4096   61440   texts: detail, identity, declared, raised, verdict; each has a sequence lock
65536  153600  12 groups of 12800: calls, time of the last (s); at 48: the first call whose
               order proves nothing (0 none); at 64: round of init, size, own rank in it, name; at
               160: its ranks; at 512: a ring of the last 1024 calls, indexed by number: digest
               up to it, digest of the places up to it, signature
219136 49152   512 signatures of 96, a ring indexed by number: number, hash of what all ranks must
               share, elements, root, place, operation, reduce operation, dtype, shape
268288 32768   128 places of 256: line, function, file
301056 1536    the last 64 steps, a ring indexed by step number: time (s), seconds in which the main
               thread waited for data, and in collectives
302592 8192    8 loops over data of 1024: see `LOOP` and `BATCH`
310784 1024    64 checks of parameters of 16, a ring indexed by number: step, parameter, digest
311824 64      checkpoints and evaluations of the main thread: see `ASIDE`
312320 64      the framework's own numbers of steps: see `NUMBER`
312384 32      checkpoints: steps that were done when the last was written, and when one was read (-1: none)
312416 15232   119 names of tensors of 128, indexed by their number: number, path in the model, number
====== ======= ==============================================================================

Small records carry their generation at both ends; a reader that sees two different ones reads again.
Times are CLOCK_MONOTONIC, which all processes of a host share.
"""

from __future__ import annotations

import mmap
import struct

MAGIC = b"ALBOARD\0"
VERSION = 6
SIZE = 327680
SUFFIX = ".box"
IMPORTS_PREFIX = "imports-"
"""With the number of a worker: the record of what it has imported."""
ENDED = ".ended"
"""Of the file in which a member's parent leaves how it ended."""
RING = 64
SLOTS = 16
NAME_BYTES = 64

# "=" throughout: standard sizes without padding, since the two ends may be different Pythons. What is written
# in each step lies at multiples of its size: see `typed_views`.
HEADER = struct.Struct("=8sIIQdQIi")
AGENT = struct.Struct("=dII")
STATE = struct.Struct("=IIdII")
STEP = struct.Struct("=QQddddQ")
OP = struct.Struct("=QddQQ%dsQ" % NAME_BYTES)
"""Of a thread: operations entered, since when the last one (s), seconds inside of those before, 0 or, inside
of one, 1 + its group (0 for none), its number in the group, its name, operations entered."""
OP_LAST, NAME_AT = 13, 40
"""Of an `OP`: the count at the end, in 64-bit numbers, and the name, in bytes."""
THREAD = struct.Struct("=Q")
TEXT = struct.Struct("=II")

AGENT_AT = 128
STATE_AT = 192
STEP_AT = 256
SLOTS_AT = 1024
SLOT_BYTES = 128
THREAD_AT = 112
TEXTS = {  # name: (offset, bytes)
    "detail": (4096, 512),
    "identity": (4608, 3584),
    "raised": (8192, 8192),
    "verdict": (16384, 8192),
    "declared": (24576, 40960),
}

CALL = struct.Struct("=QdQ")
ENTRY = struct.Struct("=III")
UNORDERED = struct.Struct("=Q")
GROUP = struct.Struct("=III64s")
SIGNATURE = struct.Struct("=IIQiI24s8s14s24s")
PLACE = struct.Struct("=I60s188s")

GROUPS = 12
GROUPS_AT = 65536
GROUP_BYTES = 12800
UNORDERED_AT, ABOUT_AT, RANKS_AT, CALLS_AT = 48, 64, 160, 512
RANKS_BYTES = 256
CALLS = 1024
SIGNATURES = 512
SIGNATURES_AT = 219136
SIGNATURE_BYTES = 96
PLACES = 128
PLACES_AT = 268288
PLACE_BYTES = 256

PACE = struct.Struct("=ddd")
RING_AT = 301056
LOSS = struct.Struct("=QIQdQ")
LOSS_AT = 320
MEMORY = struct.Struct("=QqqqqqIiQ")
"""Generation; bytes in use by tensors, reserved from the driver, the peak of those in use, and the limit;
allocations that had to be tried again; who counts (see `device_memory.READERS`, from 1); the device;
generation. -1 where it is not told."""
MEMORY_AT = 384
LOOP = struct.Struct("=IIII256sI")
"""Generation, passes begun, the last that is over, its batches, the place (file, line and function in
lines), generation. A pass goes once through a loader; passes count from 1."""
BATCHES = struct.Struct("=II")
"""Pass and batches so far in it, at 288 of a loop."""
BATCHES_AT = 288
BATCH = struct.Struct("=IIiIQ")
"""One sampled batch: pass, number in it (1...), rows, digest, steps done before it. A ring of the last
samples from 320 of a loop."""
SAMPLES_AT, SAMPLES = 320, 8
LOOPS, LOOP_BYTES = 8, 1024
LOOPS_AT = 302592
CHECK = struct.Struct("=QII")
CHECKS = 64
CHECKS_AT = 310784
ASIDE = struct.Struct("=IIdd8x")
"""How many were begun, inside of one (1) or not, since when (s), seconds in those that are over."""
ASIDES_AT = 311824
CHECKPOINT, EVALUATION = 0, 1
NUMBER = struct.Struct("=QqqqqqQ")
"""Generation; the first and the last number that the framework gave to a step; how often they went back;
the number before they last did, and the one after; generation."""
NUMBER_AT = 312320
KEPT = struct.Struct("=QqqQ")
KEPT_AT = 312384
TENSOR_NAME_BYTES = 120
TENSOR = struct.Struct("=I%dsI" % TENSOR_NAME_BYTES)
"""A parameter or buffer that a collective was called with: its number, its path, its number again."""
TENSORS = 119
TENSORS_AT = 312416


def typed_views(map_: mmap.mmap) -> tuple[memoryview[int], memoryview[float], memoryview[int]]:
    """Return the whole map as 64-bit integers, as 64-bit floats, and as 32-bit integers.

    Between the steps of a program, where the caches are not ours, to set a number in one of them takes a
    third of the time of a `pack_into` of the struct module, however many numbers that packs.
    """
    raw = memoryview(map_)
    return raw.cast("Q"), raw.cast("d"), raw.cast("I")


def write_text(map_: mmap.mmap, name: str, value: str) -> None:
    """Replaces one text under its sequence lock; what does not fit is cut. One writer a text."""
    offset, room = TEXTS[name]
    data = value.encode("utf-8", "replace")[: room - TEXT.size]
    start = offset + TEXT.size
    # Even: an exception out of a signal's handler may have ended a writer half-way.
    lock = TEXT.unpack_from(map_, offset)[0] & ~1
    # Odd while the bytes change: whoever reads now, or compares the lock afterwards, tries again.
    TEXT.pack_into(map_, offset, lock + 1, len(data))
    map_[start : start + len(data)] = data
    TEXT.pack_into(map_, offset, lock + 2, len(data))


def read_text(map_: mmap.mmap | bytearray, name: str) -> str | None:
    """One text of a box; None while it is being written."""
    offset, room = TEXTS[name]
    for _ in range(4):
        lock, length = TEXT.unpack_from(map_, offset)
        # The length is checked, too: it may be torn, or the file be written by anybody.
        if lock % 2 or length > room - TEXT.size:
            continue
        data = bytes(map_[offset + TEXT.size : offset + TEXT.size + length])
        if TEXT.unpack_from(map_, offset)[0] == lock:
            return data.decode("utf-8", "replace")
    return None
