"""One attempt to reach a place, on real sockets."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from allaboard.cluster.transport import connect_probe
from allaboard.facts import Answer


def test_a_client_that_meets_itself_was_refused_and_leaves_the_port_free() -> None:
    """Whose own port, by chance, is the one that it goes to: it may be, on the host where all meet."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.setblocking(False)
        where = made.getsockname()
        met = asyncio.run(connect_probe._connect(made, where, "127.0.0.1", 5))
    assert (met.answer, met.detail) == (Answer.REFUSED, "Connection refused")
    with socket.socket() as first:
        first.bind(where)


def test_a_link_local_address_wants_its_interface() -> None:
    met = asyncio.run(connect_probe.connect_and_greet("[fe80::1]:9"))
    assert met.answer is Answer.UNREACHABLE
    assert "fe80::1%eth0" in met.detail or not has_ipv6(), "a kernel without IPv6 says that"


def has_ipv6() -> bool:
    try:
        socket.socket(socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_a_refusal_is_told_in_the_systems_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    met = asyncio.run(connect_probe.connect_and_greet(f"127.0.0.1:{port}"))
    assert (met.answer, met.detail) == (Answer.REFUSED, "Connection refused")


def test_where_no_thread_can_ask_for_the_name_the_attempt_has_failed() -> None:
    async def main() -> connect_probe.ConnectResult:
        threads = ThreadPoolExecutor(1)
        threads.shutdown()  # as where no thread can be started: RuntimeError
        asyncio.get_running_loop().set_default_executor(threads)
        return await connect_probe.connect_and_greet("127.0.0.1:1")

    result = asyncio.run(main())
    assert result.answer is Answer.FAILED and result.detail
