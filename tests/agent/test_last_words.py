"""The line that says why a process ended, and not the native stack that is written after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.agent.output import Terminal, WorkerLog

FATAL = b"F1122 14:54:53.751254   18071 client.h:80] Terminating process because the JAX distributed service"
TRAIL = (
    b"Additional GRPC error information from remote target coordination_service while calling X",
    b':UNKNOWN:Error received from peer  {grpc_message:"Socket closed", grpc_status:14}',
    b"*** Check failure stack trace: ***",
    b"    @     0x7f2970440634  absl::lts_20260107::log_internal::LogMessage::SendToLog()",
    b"    @     0x7f2977ca71f5  (unknown)",
)


@pytest.mark.usefixtures("capfd")
def test_a_native_stack_is_no_last_line(tmp_path: Path) -> None:
    log = WorkerLog("0", 0, tmp_path / "log", Terminal())
    log.feed(2, b"\n".join((b"step 80", FATAL, *TRAIL, b"")))
    log.close()
    assert log.last_line == FATAL.decode()
    assert b"0x7f2977ca71f5" in (tmp_path / "log").read_bytes()
