"""What gRPC's own trace (GRPC_VERBOSITY, GRPC_TRACE), and an exception of its that was copied without the
traceback, tell of a task or server that it tries in vain to reach."""

from __future__ import annotations

import re

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.grpc_exception_messages import MESSAGES
from allaboard.facts import Exhibit, Heard, Severity, Speaker, Testimony, Who
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

_ATTEMPT = re.compile(
    # gRPC 1.9 to 1.40 (subchannel.cc)
    r"Connect failed: \{[^\n]{0,900}?\"os_error\":\"(?P<why>[^\"\n]{1,80})\"[^\n]{0,300}?"
    r"\"target_address\":\"ipv[46]:(?P<address>[\w.:%\[\]-]{3,120}):(?P<port>\d{1,5})\""
    # gRPC 1.41 to 1.70
    r"|address=ipv[46]:(?P<address2>[\w.:%\[\]-]{3,120}):(?P<port2>\d{1,5})[^\n]{0,120}?\}?: connect failed "
    r"\((?P<why2>[^)\n]{1,200})"
)
_PROGRESS = re.compile(
    r"\bloss\b|global_step|\bstep ?[=:]? ?\d|\bepoch\b|examples/sec|images/sec|local_init_op", re.I
)
_CHANNELS = re.compile(r"GrpcChannelCache for job (?P<job>\w+) -> \{(?P<members>[^}\n]{1,4000})\}")
_MEMBER = re.compile(r"(?P<index>\d{1,7}) -> (?P<host>[^,\s]{1,255}):(?P<port>\d{1,5})")
MIN_ATTEMPTS = 2
"""Attempts in vain with which a log ends; the first one is made before the others have started."""

PROXY = KnownMessage(
    key="scheme not supported in proxy URI",
    pattern=r"'(?P<scheme>\w{1,20})' scheme not supported in proxy URI",
    rule="LOG013",
    says="gRPC was given a proxy (https_proxy, http_proxy) by a {scheme}:// address, which it cannot use",
    fix="unset http_proxy https_proxy all_proxy   # in the job's environment; or export no_proxy=HOST,... "
    "with all members: the members of a job must reach each other directly",
    proves_not="that it is why the job waits: gRPC goes on without the proxy",
    severity=Severity.WARNING,
    sample="E0118 09:12:01.201010   12345 http_proxy.cc:62] 'https' scheme not supported in proxy URI",
    source="its wording from the source of gRPC 1.3 to 1.70 (http_proxy_mapper.cc)",
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    """Return the address that this process still could not reach when its log ends."""
    text = exhibit.text
    if PROXY.key in text and not _PROGRESS.search(text, text.rfind(PROXY.key)):
        return Testimony(heard=find_known_messages(exhibit, (PROXY,))[:1])
    if MESSAGES[0].key in text and TRACEBACK_HEAD not in text:  # which says the same
        last_mention = text.rfind(MESSAGES[0].key)
        went_on = _PROGRESS.search(text, last_mention) is not None
        broken_calls = () if went_on else find_known_messages(exhibit, MESSAGES)[:1]
        if broken_calls:
            return Testimony(heard=broken_calls)
    if "onnect failed" not in text:
        return None
    attempts = list(_ATTEMPT.finditer(text))[-MIN_ATTEMPTS:]
    if len(attempts) < MIN_ATTEMPTS or _PROGRESS.search(text, attempts[0].end()):
        return None
    attempt = attempts[-1]
    host, port = attempt["address"] or attempt["address2"], attempt["port"] or attempt["port2"]
    why = (attempt["why"] or attempt["why2"]).strip()
    task = _task_at(text, host, port)
    number = text.count("\n", 0, attempt.start())
    name = f"{task.name} ({host} port {port})" if task is not None else f"{host} port {port}"
    heard = Heard(
        rule="NET002" if "refused" in why.lower() else "NET003",
        says=f"it still could not connect to {name} when its log ends: {why}",
        speakers=(Speaker(exhibit.rank, attempt[0][:300], exhibit.place_of_line(number)),),
        fix=f"from its host: nc -vz {host} {port}; read the log of the task that the cluster has there: a "
        "refusal is mostly a task that does not run yet, a timeout a firewall or a wrong address",
        proves_not="that it will not come: gRPC tries again",
        severity=Severity.WARNING,
        awaits=True,
        about=(task,) if task is not None else (),
    )
    return Testimony(heard=(heard,))


def _task_at(text: str, host: str, port: str) -> Who | None:
    """Return the task that the cluster of this process has at an address, if it is the only one."""
    tasks = {
        (channels["job"], int(member["index"]))
        for channels in _CHANNELS.finditer(text)
        for member in _MEMBER.finditer(channels["members"])
        if member["host"] == host and member["port"] == port
    }
    if len(tasks) != 1:
        return None
    ((job, index),) = tasks
    return Who(job=job, index=index)


READER = LogReader(read=read_log)
