"""The port of a roll call, handed over: members stay connected, strangers stand in the queue, and
whoever binds next must have it at once. Also run as a program: ``hand_over.py BINDER TIMES``."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable

from allaboard.cluster.transport.client_handshake import Identity, shake_hands
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.listener import Listener
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.cluster.transport.wire import Message

Binder = Callable[[int], Callable[[], None]]
"""Binds a port, and returns what lets go of it."""


def plain(port: int) -> Callable[[], None]:
    """As TCPStore's libuv and gRPC do it: SO_REUSEADDR, all addresses."""
    made = socket.socket(socket.AF_INET6)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("::", port))
    made.listen(16)
    return made.close


def torch(port: int) -> Callable[[], None]:
    from torch.distributed import TCPStore

    kept = [TCPStore("127.0.0.1", port, 1, True)]
    assert kept[0].port == port
    return kept.clear


def grpc(port: int) -> Callable[[], None]:
    """The library that TensorFlow and JAX build in."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc as library

    server = library.server(ThreadPoolExecutor(1))
    assert server.add_insecure_port(f"[::]:{port}") == port
    server.start()
    return lambda: server.stop(None).wait()


def tensorflow(port: int) -> Callable[[], None]:
    import tensorflow as tf

    cluster = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{port}", "127.0.0.1:1"]})
    server = tf.distribute.Server(cluster, "worker", 0)
    assert server.target == f"grpc://127.0.0.1:{port}"
    return lambda: None  # it has no end but the process's


def jax(port: int) -> Callable[[], None]:
    import jax

    jax.distributed.initialize(f"127.0.0.1:{port}", 1, 0, initialization_timeout=10)
    return jax.distributed.shutdown


async def hand_over(binder: Binder, times: int, same_port: bool = True) -> None:
    """So many roll calls of two members, each followed by the binder on its port. Raises what the
    binder raises."""
    port = _free()
    for _ in range(times):
        port = port if same_port else _free()
        here: list[MemberConnection] = []
        listener = Listener("", b"", here.append, _ignore, _nobody)
        await listener.open_port(port)
        writers = [await _member(port, rank) for rank in range(2)]
        writers.append((await asyncio.open_connection("127.0.0.1", port))[1])
        with socket.socket() as queued:
            queued.setblocking(False)
            queued.connect_ex(("127.0.0.1", port))
            listener.close_port()
            let_go = binder(port)
        assert len(here) == 2
        for writer in writers:
            writer.close()
        listener.close()
        let_go()
        await asyncio.sleep(0)


async def _member(port: int, rank: int) -> asyncio.StreamWriter:
    met = await connect_and_greet(f"127.0.0.1:{port}")
    await shake_hands(met, Identity("", b"", f"h{rank}", rank, ""))
    assert met.writer is not None
    return met.writer


def _free() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


def _ignore(member: MemberConnection, word: Message | None) -> None:
    pass


def _nobody(peer: str, kind: str, said: str) -> None:
    pass


if __name__ == "__main__":
    if sys.argv[1] in ("torch", "tensorflow", "jax"):
        __import__(sys.argv[1])  # takes seconds, in which others could take the port that is free
    asyncio.run(hand_over(globals()[sys.argv[1]], int(sys.argv[2]), sys.argv[1] != "tensorflow"))
    print("handed over", flush=True)
