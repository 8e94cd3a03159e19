"""How real processes ended that are another process's children."""

from __future__ import annotations

import select
import subprocess
import sys

import pytest

from allaboard.hosts.exit_watcher import ExitWatcher

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read(); " + sys.argv[1]],
                         stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.readline()
child.stdin.close()
sys.stdin.readline()
print(child.wait(), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize(
    ("does", "status"),
    [("import os; os.kill(os.getpid(), 9)", 9), ("sys.exit(3)", 3 << 8), ("0", 0)],
)
def test_how_anothers_child_ended_is_known_once_it_has(does: str, status: int) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", PARENT, does], **pipes) as parent:  # type: ignore[call-overload]
        child = int(parent.stdout.readline())
        ends = ExitWatcher()
        ends.follow_process(child)
        assert ends.exit_status(child) is None, "it lives"
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert select.select([ends], [], [], 20)[0], "its end wakes who waits"
        ends.collect_exits()
        parent.stdin.write("\n")
        parent.stdin.flush()
        parent.stdout.readline()  # it has been waited for: /proc knows it no more
        assert ends.exit_status(child) == status
        ends.close()
        parent.stdin.write("\n")


def test_nobody_is_followed_who_is_not_there() -> None:
    ends = ExitWatcher()
    ends.follow_process(2**22 + 1)
    ends.collect_exits()
    assert ends.exit_status(2**22 + 1) is None
    ends.close()
