"""An init of JAX's that refuses, in a program that goes on without it."""

from __future__ import annotations

from probed import Program

JAX = """
class State:
    def initialize(self, coordinator_address=None, num_processes=None, process_id=None):
        pass
def initialize(early=False):
    if early:
        raise RuntimeError("must be called before any JAX calls")
    return 7
"""


def test_it_is_noted_where_init_refused(program: Program) -> None:
    package = program.folder / "jax" / "_src"
    package.mkdir(parents=True)
    for name in ("jax/__init__.py", "jax/_src/__init__.py"):
        (program.folder / name).write_text("")
    (package / "distributed.py").write_text(JAX)
    ended = program.run(
        "from jax._src.distributed import initialize\n"
        "assert initialize() == 7\n"
        "try:\n    initialize(early=True)\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    assert (ended.out, ended.code) == ("must be called before any JAX calls\n", 0), ended.err
    told = program.read(ended.pid).notes["init failed"]
    place = program.folder / "script.py"
    assert told == f"RuntimeError: must be called before any JAX calls at {place}:4"
