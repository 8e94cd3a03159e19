"""The same agent, but nobody's child: ``python -m allaboard.dropin.attach.daemonize TOLD``.

Started this way it stays as long as the process it watches. As a child of that process it would be met by
whoever waits there for every child (``os.wait()`` until ChildProcessError), and could not end before.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """The first process ends at once, before anything is imported that takes time."""
    if os.fork():
        os._exit(0)
    from allaboard.dropin.attach.__main__ import main as agent

    return agent(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
