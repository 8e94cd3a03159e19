"""The same agent, but as nobody's child: ``python -m allaboard.dropin.attach.daemonize SETTINGS``.

Started this way it stays as long as the process it watches. A program that waits for every child
(``os.wait()`` until ChildProcessError) would find it as its child, and could not end before it.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Fork, end the first process at once, before anything slow is imported, and be the agent in the
    second."""
    if os.fork():
        os._exit(0)
    from allaboard.dropin.attach.__main__ import main as agent

    return agent(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
