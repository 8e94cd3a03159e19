"""Stores where the leader posts its address if the rendezvous itself is no free port.

A file:// rendezvous has a folder that all hosts share; under torchrun the launcher's own store already holds
the port. The leader posts its address there, and the other hosts read it.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import time
from pathlib import Path
from typing import Protocol

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.connect_probe import GREETING_TIMEOUT_S
from allaboard.cluster.transport.outgoing_socket import open_stream

SET_QUERY, GET_QUERY, CHECK_QUERY = 1, 3, 5
"""Query numbers of TCPStore's protocol; torch/csrc/distributed/c10d/TCPStoreBackend.hpp."""


class AddressStore(Protocol):
    """A place that all hosts can read. Both methods raise OSError if it cannot be used."""

    async def post_address(self, address: str) -> None:
        """Publish the leader's ``host:port``."""
        ...

    async def find_address(self) -> str:
        """Return the address that was posted; "" if there is none."""
        ...


class FileAddressStore:
    """A file beside that of the file:// rendezvous.

    ``since`` is the wall time (s) from which a post counts: older ones are left by an earlier run.
    """

    def __init__(self, path: str, job: str, since: float) -> None:
        self.file = Path(path + ".allaboard")
        self.job = job
        self.since = since

    async def post_address(self, address: str) -> None:
        # Renamed into place: a reader must never see half a file.
        temporary = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        temporary.write_text(json.dumps({"address": address, "job": self.job, "at": time.time()}))
        temporary.replace(self.file)

    async def find_address(self) -> str:
        try:
            post = json.loads(self.file.read_text())
            fresh = post["at"] >= self.since or bool(self.job and post["job"] == self.job)
            return str(post["address"]) if fresh else ""
        except FileNotFoundError:
            if not self.file.parent.is_dir():
                raise
            return ""
        except (ValueError, KeyError, TypeError):
            return ""


class TcpAddressStore:
    """A key in the TCPStore of the launcher, under a prefix of our own."""

    def __init__(self, address: str, job: str) -> None:
        self.address = address
        self.key = f"/allaboard/{job}/door".encode()

    async def post_address(self, address: str) -> None:
        value = address.encode()
        await self._send_query(SET_QUERY, _length_prefixed(self.key) + _length_prefixed(value), 0)

    async def find_address(self) -> str:
        presence = await self._send_query(
            CHECK_QUERY, struct.pack("<Q", 1) + _length_prefixed(self.key), 1
        )
        if presence != b"\0":  # 0: the key exists
            return ""
        return (await self._send_query(GET_QUERY, _length_prefixed(self.key), -1)).decode(
            "utf-8", "replace"
        )

    async def own_address(self) -> str:
        """Return the address by which this host reaches the store, and is therefore reached."""
        _, writer = await self._open()
        own_address = str(writer.get_extra_info("sockname")[0])
        writer.close()
        return own_address.removeprefix("::ffff:")

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(GREETING_TIMEOUT_S):
            return await open_stream(self.address)

    async def _send_query(self, query: int, payload: bytes, length: int) -> bytes:
        """Send one query; return ``length`` bytes of answer, or a length-prefixed answer for -1."""
        reader, writer = await self._open()
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                writer.write(wire.GREETING + bytes([query]) + payload)
                # The ping in our greeting comes first in the answer, and shows that this is a TCPStore at
                # all.
                if await reader.readexactly(len(wire.STORE_PING_NONCE)) != wire.STORE_PING_NONCE:
                    raise ConnectionError(f"no TCPStore at {self.address}")
                if length < 0:
                    (length,) = struct.unpack("<Q", await reader.readexactly(8))
                return await reader.readexactly(min(length, wire.MAX_STRANGER_FRAME_BYTES))
        except asyncio.IncompleteReadError:
            raise ConnectionError(f"no TCPStore at {self.address}") from None
        finally:
            writer.close()


def _length_prefixed(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data
