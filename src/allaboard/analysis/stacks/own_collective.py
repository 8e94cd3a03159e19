"""What a collective is that a framework calls by itself, and how a table tells where it is called."""

from __future__ import annotations

from typing import NamedTuple

LET_ALL_RUN_IT = "let all ranks run this line"
SHARD_ADVICE = (
    f"{LET_ALL_RUN_IT}: every rank holds a shard of the model, and model.module(...) needs it too"
)
STEP_ADVICE = f"{LET_ALL_RUN_IT}: every rank updates its part and sends it to the others"
LIBRARY_ADVICE = f"{LET_ALL_RUN_IT}: move the call out of what only some ranks reach"


class OwnCollective(NamedTuple):
    """A function of a framework in which a process takes part in a collective of the framework's own."""

    file: str
    """Regular expression of the end of the file's path."""
    function: str
    """Regular expression of the function's name."""
    name: str
    """What it is, as a noun phrase: "DDP's broadcast of buffers"."""
    advice: str
    """What to do if only some ranks come to it."""
    caller: str = ""
    """Regular expression of the end of the path of a caller, where the function alone does not tell; "" for
    none."""
    waits: bool = True
    """False if a process may as well compute or write there: then it waits only if a collective of the
    library's is further in."""
    passes_on: bool = False
    """True if it only passes on to PyTorch what its caller asks for: then the caller says what it is, and
    the user's code may be the caller."""
    is_message: bool = False
    """True if it waits for one peer, not for all: the others are rightly somewhere else."""
