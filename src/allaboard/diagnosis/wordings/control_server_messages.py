"""Known messages of OneFlow's members, which meet at each other's control servers, and of ps-lite's nodes."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage
from allaboard.facts import Severity

_ONEFLOW = "its wording from the source of OneFlow 0.2 to 1.0 (ctrl_client.cpp, rpc_client.cpp)"
_PROXY = "a proxy answers for other addresses: unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY"


def _unreached(why: str, rule: str, says: str, fix: str, sample: str) -> KnownMessage:
    """Return the message of a member that tries another one's server again and again, by its reason."""
    return KnownMessage(
        key=" times error_code ",
        pattern=r"LoadServer +(?P<host>[\w.:-]{1,255}) Failed at (?P<count>\d{1,6}) times error_code \d+ "
        rf"error_message (?P<why>{why})",
        rule=rule,
        says=says,
        fix=fix,
        proves_not="that it will not come: OneFlow tries again",
        severity=Severity.WARNING,
        awaits=True,
        sample="I1224 15:34:18.928788 234641 ctrl_client.cpp:234] LoadServer node-b Failed at 3 times "
        f"error_code 14 error_message {sample}",
        source=_ONEFLOW,
    )


UNREACHED = (
    _unreached(
        r"DNS resolution failed[^\n]{0,80}",
        "NET001",
        "a member of OneFlow cannot resolve the name {host} of another one",
        "getent hosts {host}   # on the host that wrote it; no output: correct the name, DNS or /etc/hosts",
        "DNS resolution failed",
    ),
    _unreached(
        r"(?!DNS resolution)[^\n]{3,120}",
        "NET002",
        "a member of OneFlow cannot reach the control server of {host} ({why})",
        f"on {{host}}: does the program run there, and listen? ss -ltnp | grep PORT; {_PROXY}",
        "failed to connect to all addresses",
    ),
)
CAME = "LoadServer"
"""Begins what a member writes once it has reached the other, too: ``LoadServer node-b Successful at``."""
MACHINE_LOST = KnownMessage(
    key=" lost",
    pattern=r"Check failed: [^\n]{0,300}?StatusCode::OK \(\d+ vs\. 0\) Machine (?P<rank>\d{1,7}) lost\b",
    rule="EXIT005",
    says="rank {rank} did not answer, or went away, when this process called its control server",
    fix=f"read the log of rank {{rank}} first: did it start, and did it end? On its host: dmesg -T | grep -i "
    f"kill; else {_PROXY}",
    proves_not="that it began there: it may itself have ended because of another",
    awaits=True,
    explains=("LOG011", "LOG012", "EXIT001"),
    sample="F20240306 12:52:30.421669 11024 ctrl_client.cpp:54] Check failed: "
    "rpc_client_.GetStubAt(i)->CallMethod<CtrlMethod::kLoadServer>( &client_ctx, request, "
    "&response).error_code() == grpc::StatusCode::OK (14 vs. 0) Machine 0 lost",
    source=_ONEFLOW,
)
