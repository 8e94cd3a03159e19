"""A task's address is not of the form host:port.

## Why it matters
TensorFlow hands the text to gRPC as it is. An address without a port, with `http://` before it, with a
space, with a port above 65535, or with a placeholder left in it never connects, and no message says so:
every member waits. Port 0 means "any free port", which no other member can know.

## What to do
Write the entry in the form shown. IPv6 addresses are in brackets: `[fd00::1]:2222`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Who, address, sample_config_facts, whole_number

_MAX_REPORTED = 20
"""Addresses that are reported one by one; a mistake in a template is in all of them."""


def check(facts: ConfigFacts) -> Iterator[Claim]:
    reported = 0
    shapes = {str(p.origin) for p in facts.problems if p.kind == "tf_config.shape"}
    for job, index, value in facts.spec.tasks():
        wrong = address.address_fault(value.text, port=2222)
        if wrong is None or str(value.origin) in shapes:
            continue  # what is no text is reported as tf-config-shape
        reported += 1
        if reported > _MAX_REPORTED:
            return
        yield Claim(
            summary=f"the address of {job} {index} {wrong[0]}",
            who=(Who(job=job, index=index),),
            evidence=(value.evidence,),
            fix=f'"{_reachable(job, index, value.text, wrong[1])}"',
            where=value.origin.editor_place,
        )


def _reachable(job: str, index: int, text: str, right: str) -> str:
    """Return the corrected address; for port 0 of this host alone, with a host that others can reach."""
    parsed = address.parse_address(text)
    if whole_number(parsed.port) != 0 or not address.is_this_host_alone(parsed.host):
        return right
    return f"HOST-OF-{job.upper()}-{index}:{address.parse_address(right).port}"


def _with_worker(text: str) -> ConfigFacts:
    return sample_config_facts(cluster={"worker": ["a:2222", text]}, task=("worker", 0))


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "an address without a port": (
            _with_worker("10.0.0.2"),
            "the address of worker 1 has no port",
        ),
        "an address that begins with `http://`": (
            _with_worker("http://b:2222"),
            "the address of worker 1 begins with http://; a task's address has no scheme",
        ),
        "an address with a space in it": (
            _with_worker("b :2222"),
            "the address of worker 1 has a space in it",
        ),
        "a port above 65535": (
            _with_worker("b:70000"),
            "the address of worker 1 has port 70000; ports go from 1 to 65535",
        ),
        "port 0, which means any free port": (
            _with_worker("b:0"),
            "the address of worker 1 has port 0, which means any free port: nobody else could know it",
        ),
        "a placeholder that nobody filled in": (
            _with_worker("<worker-ip>:2222"),
            "the address of worker 1 is a placeholder that nobody filled in",
        ),
        "an IPv6 address without brackets": (
            _with_worker("fd00::1:2222"),
            "the address of worker 1 is an IPv6 address without brackets",
        ),
    },
    silent_on={
        "an IPv6 address in brackets": _with_worker("[fd00::1]:2222"),
        "a host name with an underscore": _with_worker("my_worker.train:2222"),
    },
)
