"""Two ranks create and destroy a group again and again, each time at a new file, until PyTorch leaves one
behind, as it does if both destroy it at the same moment. Then they create a group at that file, as a script
does that always uses the same one."""

import argparse
import os
import struct
import time

import torch.distributed as dist

TURNS = 400
SURE = 0.05
"""Seconds: who finds itself the last removes the file right after it has counted itself out."""


def read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def left(path: str) -> bool:
    """Return True if the file still exists after all have left it: c10d/FileStore.cpp of PyTorch."""
    last = b"".join(struct.pack("=I", len(part)) + part for part in (b"refcount/", b"0"))
    while (data := read(path)) and not data.endswith(last):
        time.sleep(0.002)
    time.sleep(SURE)
    return bool(read(path))


def meet(path: str, rank: int, size: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    dist.barrier()


def turn(path: str, rank: int, size: int) -> bool:
    """Return True if this turn's file was left; rank 0 writes the answer to a file beside it."""
    meet(path, rank, size)
    dist.destroy_process_group()
    answer_path = path + ".said"
    if rank == 0:
        with open(answer_path + ".new", "w") as file:
            file.write("left" if left(path) else "gone")
        os.replace(answer_path + ".new", answer_path)
    while not (answer := read(answer_path)):
        time.sleep(0.002)
    return answer == b"left"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mark", required=True, help="in whose folder they meet")
    options, _ = parser.parse_known_args()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    for number in range(TURNS):
        path = os.path.join(os.path.dirname(options.mark), f"meeting{number}")
        if turn(path, rank, size):
            meet(path, rank, size)


if __name__ == "__main__":
    main()
