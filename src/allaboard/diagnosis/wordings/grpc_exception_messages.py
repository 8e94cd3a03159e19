"""Known messages of gRPC's exceptions in Python, whose text has several lines: status, details, and a trace.

Federated learning (Flower), ElasticDL, XLA's and TensorFlow's own clients in Python raise them.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage

_KEY = "of RPC that terminated with:"
_HEAD = r"of RPC that terminated with:\s{1,40}status = StatusCode\.(?P<status>[A-Z_]{2,24})\s{1,40}details = "
_PEER = r"(?:.{0,400}?\bpeer (?P<peer>ipv[46]:[\w.:%\[\]-]{3,80}))?"
_SOURCE = (
    "its wording from the source of gRPC 1.10 to 1.70 (grpc/_channel.py, and the core below it)"
)


def _ended(
    details: str, rule: str, says: str, fix: str, proves_not: str, sample: str
) -> KnownMessage:
    """Return the message of a call that ended with these ``details``, a regular expression."""
    return KnownMessage(
        key=_KEY,
        pattern=_HEAD + details,
        rule=rule,
        says=says,
        fix=fix,
        proves_not=proves_not,
        awaits=True,
        explains=("LOG012",),
        sample=f"grpc._channel._MultiThreadedRendezvous: <_MultiThreadedRendezvous {_KEY}\n\tstatus = "
        f"StatusCode.UNAVAILABLE\n\tdetails = {sample}",
        source=_SOURCE,
    )


MESSAGES = (
    _ended(
        r'"failed to connect to all addresses; last error: [^\n"]{0,80}?ipv[46]:(?P<host>[\w.%\[\]:-]{3,80}):'
        r"(?P<port>\d{1,5}): (?:Failed to connect to remote host: )?(?P<why>[^\n\"]{3,80})\"",
        "NET002",
        "no server of gRPC could be reached at {host} port {port}: {why}",
        "ss -ltnp | grep {port}   # on {host}: nothing? Start the server, or read its log: did it fail "
        "or end? It "
        "must run before its clients; from another host: nc -vz {host} {port}; unset http_proxy https_proxy",
        "whether the server had not started, or had ended",
        '"failed to connect to all addresses; last error: UNKNOWN: ipv4:192.0.2.7:8080: Failed to connect to '
        'remote host: Connection refused"',
    ),
    _ended(
        r'"failed to connect to all addresses"',
        "JOIN001",
        "no server of gRPC could be reached at the address that this process was given",
        "read the server's log: did it start before its clients, and listen at the address that they are "
        "given? "
        "nc -vz HOST PORT; unset http_proxy https_proxy",
        "whether the server had not started, or had ended",
        '"failed to connect to all addresses"',
    ),
    _ended(
        r'"Too many pings"' + _PEER,
        "LOG013",
        "the server {peer} closed the connection because the client's keepalive pings came too often",
        "the same settings on both sides: the client's grpc.keepalive_time_ms not below the server's "
        "grpc.http2.min_ping_interval_without_data_ms (5 minutes by default), and "
        "grpc.keepalive_permit_without_calls alike; the same version of the library on all members",
        "",
        '"Too many pings"\n\tdebug_error_string = "UNKNOWN:Error received from peer ipv4:192.0.2.9:5040 '
        '{grpc_message:\\"Too many pings\\"}"',
    ),
    _ended(
        r'"(?P<why>Stream removed|Socket closed|Connection reset by peer|recvmsg:[^\n"]{1,60}|GOAWAY received'
        r'|Received RST_STREAM with error code \d+|Connection timed out)"' + _PEER,
        "EXIT005",
        "the connection to a server of gRPC {peer} broke ({why}): it ended or started anew, or a proxy "
        "between "
        "them gave up",
        "read the server's log first: did it fail or end before? On its host: dmesg -T | grep -i kill",
        "that the server ended: a link that broke looks the same",
        '"Stream removed"\n\tdebug_error_string = "{\\"description\\":\\"Error received from peer '
        'ipv4:192.0.2.9:8080\\"}"',
    ),
)
