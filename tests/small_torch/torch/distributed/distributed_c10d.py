"""Rank 0 listens at MASTER_PORT, the others connect to it and stay connected, as to a TCPStore."""

import os
import socket
import time

__all__ = ["barrier", "init_process_group"]
MEETING_TIMEOUT_S = 30.0
_peers = {}


def init_process_group(backend):
    """Return once all ranks are connected. Raises OSError if they are not within `MEETING_TIMEOUT_S`."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        with socket.create_server(("", address[1]), backlog=size) as listener:
            listener.settimeout(MEETING_TIMEOUT_S)
            while len(_peers) < size - 1:
                peer, _ = listener.accept()
                peer.settimeout(MEETING_TIMEOUT_S)
                # Anybody may connect: only a rank says which one it is.
                said = peer.recv(8)
                if len(said) == 8 and said.startswith(b"rank"):
                    _peers[int(said[4:])] = peer
        for peer in _peers.values():
            peer.sendall(b"a")
        return
    deadline = time.monotonic() + MEETING_TIMEOUT_S
    while True:
        try:
            peer = socket.create_connection(address, timeout=MEETING_TIMEOUT_S)
            peer.sendall(b"rank%04d" % rank)
            if peer.recv(1) == b"a":
                break
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)
    _peers[0] = peer


def barrier():
    """Return once all ranks are in it. Raises OSError if one has gone."""
    if 0 not in _peers:
        for peer in _peers.values():
            _expect(peer)
        for peer in _peers.values():
            peer.sendall(b"x")
        return
    _peers[0].sendall(b"x")
    _expect(_peers[0])


def _expect(peer):
    if peer.recv(1) != b"x":
        raise ConnectionError("Connection closed by peer")
