"""Waits inside the kernel, as its own report, `/proc/PID/stack` and `ps` show them."""

from __future__ import annotations

import pytest

from allaboard.diagnosis.instruments.kernel_waits import read_log
from allaboard.facts import Exhibit, Heard, Severity


def heard(text: str) -> tuple[Heard, ...]:
    testimony = read_log(Exhibit(name="a.txt", data=text.encode()))
    return testimony.heard if testimony is not None else ()


@pytest.mark.parametrize(
    ("function", "awaited"),
    [
        ("nfs4_call_sync_sequence+0x79/0xb0 [nfsv4]", "its NFS server"),
        ("rpc_wait_bit_killable+0x24/0xb0 [sunrpc]", "its NFS server"),
        ("cl_sync_io_wait+0x1b5/0x3d0 [obdclass]", "a server of Lustre"),
        ("ceph_mdsc_do_request+0x11/0x200 [ceph]", "a server of Ceph"),
        ("request_wait_answer+0x12/0x240", "a filesystem in user space"),
        ("uvm_va_space_destroy+0x1/0x2 [nvidia_uvm]", "NVIDIA's driver"),
        ("jbd2_log_wait_commit+0x10/0x140 [jbd2]", "a disk"),
    ],
)
def test_a_blocked_task_waits_for_what_its_functions_are_of(function: str, awaited: str) -> None:
    text = (
        "[12345.678] INFO: task python:48211 blocked for more than 120 seconds.\n"
        "[12345.679]       Tainted: P  OE  5.15.0-91-generic\n[12345.680] Call Trace:\n"
        f"[12345.681]  __schedule+0x2d0/0x890\n[12345.682]  schedule+0x4e/0xc0\n[12345.683]  {function}\n"
    )
    (one,) = heard(text)
    assert one.rule == "LOG015"
    assert f"pid 48211 (python) waited in the kernel for {awaited}" in one.says
    assert one.severity is Severity.ERROR
    assert [w.pid for w in one.about] == [48211]


def test_a_task_that_is_reported_again_and_again_is_one() -> None:
    line = "INFO: task python:48211 blocked for more than 120 seconds.\n"
    assert len(heard(line * 3)) == 1


def test_the_stack_of_a_process_is_read_below_its_command() -> None:
    text = (
        "$ cat /proc/48211/stack\n[<0>] rpc_wait_bit_killable+0x24/0xb0 [sunrpc]\n"
        "[<0>] nfs_lookup_revalidate+0x1f3/0x340 [nfs]\n[<0>] do_syscall_64+0x5b/0x1a0\n"
    )
    (one,) = heard(text)
    assert "pid 48211 waited in the kernel for its NFS server" in one.says
    assert one.severity is Severity.WARNING


def test_a_stack_that_only_sleeps_or_polls_is_no_wait_for_a_device() -> None:
    assert not heard("[<0>] futex_wait_queue+0x60/0x90\n[<0>] do_syscall_64+0x5b/0x1a0\n")
    assert not heard("[<0>] hrtimer_nanosleep+0x9f/0x190\n[<0>] do_syscall_64+0x5b/0x1a0\n")


HEADED = "    PID STAT WCHAN                  ELAPSED COMMAND\n"
BY_COMMAND = "$ ps -eo pid,stat,wchan:32,etime,args | grep python\n"


@pytest.mark.parametrize("head", [HEADED, BY_COMMAND])
def test_ps_shows_who_waits_in_the_kernel(head: str) -> None:
    text = (
        f"{head}   4101 Rl   -                     02:11:09 python train.py --local_rank=0\n"
        "   4103 Dl   nfs_wait_bit_killable 02:11:09 python train.py --local_rank=2\n"
    )
    (one,) = heard(text)
    assert one.says.startswith(
        "pid 4103 (python train.py --local_rank=2) waited in the kernel for its NFS"
    )


def test_ps_aux_shows_who_is_stopped() -> None:
    row = "root  {0} 99.0  1.2 39874560 1623044 ?  {1}  08:11  71:12 python -u train.py\n"
    (one,) = heard(row.format(4101, "Rl") + row.format(4102, "Tl"))
    assert "pid 4102 (python -u train.py) is stopped (state T)" in one.says
    assert "kill -CONT 4102" in one.fix


def test_what_does_not_train_may_wait() -> None:
    text = (
        f"{HEADED}     88 D    blk_mq_get_tag        02:11:09 [kworker/u8:2]\n"
        "   4120 D+   -                     00:00:00 ls /data\n"
        "   4102 Sl   futex_wait_queue      02:11:09 python train.py\n"
    )
    assert not heard(text)
