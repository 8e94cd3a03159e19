"""What is told of an exception that says that something is used up."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.facts import Claim
from allaboard.facts.samples import ended_member, sample_job, waiting_member
from allaboard.rules.engine.catalogue import load_catalogue


def claim(kind: str, message: str, limit: int = 0, joined: bool = False) -> Claim:
    """What EXIT002 says of it."""
    one = ended_member(1, raised=(kind, message))
    assert one.raised is not None
    raised = msgspec.structs.replace(one.raised, limit=limit)
    view = sample_job(msgspec.structs.replace(one, raised=raised), waiting_member(0), joined=joined)
    rule = next(e.rule for e in load_catalogue().entries if e.code == "EXIT002")
    (found,) = rule.check(view)
    return found


@pytest.mark.parametrize(
    ("kind", "message", "fix"),
    [
        ("OSError", "[Errno 24] Too many open files: '/data/7.png'", "close what each step opens"),
        (
            "RuntimeError",
            "unable to open shared memory object </torch_17_3> in read-write mode: Too many open files (24)",
            'torch.multiprocessing.set_sharing_strategy("file_system")',
        ),
        ("OSError", "[Errno 23] Too many open files in system: 'x'", "cat /proc/sys/fs/file-nr"),
        (
            "OSError",
            "[Errno 28] No space left on device: '/data/my run/last.pt'",
            "df -h '/data/my run'; df -i '/data/my run'; du -xsh",
        ),
        (
            "RuntimeError",
            "unable to write to file </torch_17_3>: No space left on device (28)",
            "df -h /dev/shm   # --shm-size",
        ),
        ("OSError", "[Errno 28] No space left on device", "df -h; df -i"),
        ("OSError", "[Errno 122] Disk quota exceeded: '/home/u/last.pt'", "quota -s   # what you may"),
        ("RuntimeError", "can't start new thread", "ulimit -u; cat /sys/fs/cgroup/pids.max"),
    ],
)  # fmt: skip
def test_the_advice_is_about_what_is_used_up(kind: str, message: str, fix: str) -> None:
    found = claim(kind, message)
    assert found.fix.startswith(fix) and "fix " not in found.fix
    assert not any("limit" in e.observed for e in found.evidence)


def test_the_limit_is_told_where_it_was_seen() -> None:
    found = claim("OSError", "[Errno 24] Too many open files: 'x'", limit=1024)
    assert ("its limit is 1024", "ulimit -n") in [(e.observed, e.origin) for e in found.evidence]


def test_on_several_hosts_it_is_said_where_to_look() -> None:
    message = "[Errno 28] No space left on device: '/data/x'"
    assert claim("OSError", message, joined=True).fix.startswith("on a: df -h /data")


def test_other_exceptions_are_to_be_mended() -> None:
    assert claim("ValueError", "no space in the label").fix.startswith("fix ")
