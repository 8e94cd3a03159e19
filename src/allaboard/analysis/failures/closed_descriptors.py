"""A member that closed the descriptors of its own connections: it dies by it, and so do its peers.

`os.closerange(3, 4096)`, as daemons do it, closes the sockets of the process group and the epoll descriptor
of gloo's loop. That loop then ends the process by SIGABRT, with a message of its own
(gloo/transport/tcp/loop.cc: `nfds != -1`, since epoll_wait(2) answers EBADF). The peers lose a connection,
often earlier.
"""

from __future__ import annotations

import re
import signal

from allaboard.facts import Member

_GLOO_LOOP_FAILED = re.compile(r"/tcp/loop\.cc:\d+\] nfds != -1")
"""Seen with PyTorch 2.13. No other cause of this message is known than a descriptor that was closed."""


def has_closed_its_connections(member: Member) -> bool:
    """Return True if the member ended since it had closed the descriptors of its own connections."""
    end = member.exit
    return (
        end is not None
        and end.signal == signal.SIGABRT
        and _GLOO_LOOP_FAILED.search(end.last_line) is not None
    )
