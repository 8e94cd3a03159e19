"""What the values of options may be; each refusal says what to type instead."""

from __future__ import annotations

import os
from pathlib import Path

from allaboard.launching.refusal import usage

MOST = 4096
"""Workers on one host; far beyond what one host can train, and within its file limits."""


def size(n: str | None) -> int:
    if n is None:
        return 1
    if not n.isdecimal() or not 1 <= int(n) <= MOST:
        usage(f"-n {n}: a number of workers from 1 to {MOST}; try: allaboard run -n 4 train.py")
    return int(n)


def variables(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        name, equals, _ = pair.partition("=")
        if not equals or not name:
            usage(f"--env {pair}: wants NAME=VALUE, e.g. --env NCCL_DEBUG=INFO")
    return dict(pair.split("=", 1) for pair in pairs)


def check_values(steps: str | None) -> dict[str, str]:
    """The variable that tells the probe how often to look at parameters."""
    if steps is None:
        return {}
    if not steps.isdecimal() or not int(steps):
        usage(f"--check-values {steps}: a number of steps from 1, e.g. --check-values 100")
    return {"ALLABOARD_CHECK_VALUES": steps}


def secret(file: Path | None) -> bytes:
    """From the file, else from ALLABOARD_SECRET; empty where there is none."""
    if file is None:
        return os.environ.get("ALLABOARD_SECRET", "").encode()
    try:
        text = file.read_bytes().strip()
    except OSError as error:
        usage(f"--secret-file {file}: {error.strerror}")
    if not text:
        usage(f"--secret-file {file} is empty; make one: openssl rand -hex 32 > {file}")
    return text


def coordinator(address: str) -> str:
    host, _, port = address.rpartition(":")
    if address and not (host and port.isdigit() and 0 < int(port) < 65536):
        usage(f"--coordinator {address}: wants HOST:PORT, e.g. --coordinator node0:29400")
    return address
