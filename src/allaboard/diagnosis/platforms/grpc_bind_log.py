"""What gRPC's servers (TensorFlow's and JAX's) write if they cannot listen, with the reason and the port.

Until 1.50 gRPC nests the reasons in JSON, later in braces of its own. A line that says `Only 1 addresses
added` is of a server that listens all the same.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Testimony

_KEY = "No address added out of total"
_PORT = (
    r"(?:No address added out of total \d+ resolved for '(?P<host>[^'\n]*):(?P<port>\d+)"
    r"'[^\n]{{0,900}}?(?:{why})|No address added out of total \d+ resolved\"[^\n]{{0,1000}}?(?:{why})"
    r"[^\n]{{0,400}}?\"target_address\":\"(?:ipv[46]:)?(?P<host2>[^\"\s]{{0,80}}):(?P<port2>\d+)\")"
)
_TAKEN = r"Address already in use"
_TAKEN_ON_WINDOWS = r"Only one usage of each socket address"
_NOT_OWN = r"Cannot assign requested address|requested address is not valid in its context"
_SOURCE = "its wording from the source of gRPC 1.1 to 1.70 (chttp2_server.cc, tcp_server_*.cc)"
_SAMPLE = (
    'E1105 15:50:49.2 17544 server_chttp2.cc:40] {"created":"@1541454649.2","description":"No '
    'address added out of total 1 resolved","referenced_errors":[{"description":"Failed to add '
    'port to server","referenced_errors":[{"description":"OS '
    'Error","os_error":"REASON","syscall":"bind"}],"target_address":"ipv6:[::]:2222"}]}'
)
_WHO_HOLDS = (
    "who holds it: a second process with this task index, an earlier job and "
    "another program look the same"
)
MESSAGES = (
    KnownMessage(
        key=_KEY,
        pattern=_PORT.format(why=_TAKEN),
        rule="NET005",
        says="port {port}{port2} was taken when a task wanted to listen there",
        fix="ss -ltnp 'sport = :{port}{port2}'   # who holds it? end that program, or take another port for "
        "this task (TF_CONFIG, coordinator_address)",
        proves_not=_WHO_HOLDS,
        sample=_SAMPLE.replace("REASON", "Address already in use"),
        source=_SOURCE,
    ),
    KnownMessage(
        key=_KEY,
        pattern=_PORT.format(why=_TAKEN_ON_WINDOWS),
        rule="NET005",
        says="port {port}{port2} was taken when a task wanted to listen there",
        fix="netstat -ano | findstr :{port}{port2}   # the last column is the pid that holds it: end that "
        "program, or take another port for this task in the cluster",
        proves_not=_WHO_HOLDS,
        sample=_SAMPLE.replace(
            "REASON", "Only one usage of each socket address (protocol) is permitted."
        ),
        source=_SOURCE,
    ),
    KnownMessage(
        key=_KEY,
        pattern=_PORT.format(why=_NOT_OWN),
        rule="NET017",
        says="a server was to listen at {host}{host2}, port {port}{port2}, which is no address of its own "
        "host",
        fix="ip -br address   # on that host: is {host}{host2} there? If the name or a NAT leads to it: "
        "listen on all addresses, JAX_COORDINATOR_BIND_ADDRESS=0.0.0.0:{port}{port2} "
        "(jax.distributed.initialize(coordinator_bind_address=)); else start this member on the host that "
        "has it",
        proves_not="whether the address or the host is the wrong one",
        sample="E chttp2_server.cc:1053] UNKNOWN:No address added out of total 1 resolved for "
        "'192.0.2.7:50217' {children:[UNKNOWN:Unable to configure socket {fd:21, "
        'children:[UNKNOWN:Cannot assign requested address {syscall:"bind", errno:99}]}]}',
        source=_SOURCE,
    ),
)
NO_NAME = KnownMessage(
    key='"syscall":"getaddrinfo"',
    pattern=r"\"os_error\":\"(?P<why>[^\"\n]{1,80})\",\"syscall\":\"getaddrinfo\",\"target_address\":\""
    r"(?P<host>[\w.-]{1,253}):(?P<port>\d{1,5})\"",
    rule="NET001",
    says="a process could not resolve {host}, a member's name in the cluster: {why}",
    fix="getent hosts {host}   # on that host, in the pod: no output: is there a service (headless, with the "
    "pods' names), is its pod up yet, is the name right? Else /etc/hosts, DNS",
    explains=("LOG012", "EXIT001"),
    sample='E1020 08:04:33.5      81 server_chttp2.cc:40] {"description":"Name or service not '
    'known","errno":-2,'
    '"os_error":"Name or service not known","syscall":"getaddrinfo","target_address":"ps-0.ns.svc:2222"}',
    source="its wording from the source of gRPC 1.0 to 1.50 (resolve_address_posix.cc)",
)
"""What it writes of its own name, and of others'; a name that comes later is tried again."""
_LATER = re.compile(
    r"\bloss\b|global_step|\bstep ?[=:]? ?\d|\bepoch\b|local_init_op", re.IGNORECASE
)
"""Shows that the program came beyond its start."""
_LISTENS = re.compile(r"Starting JAX distributed service on \S{0,80}?:(?P<port>\d{1,5})(?!\S)")
UNNAMED = KnownMessage(
    key=_KEY,
    pattern=r'"description":"No address added out of total \d+ resolved"(?![^\n]{0,1150}"target_address")'
    r"[^\n]{0,900}?Address already in use",
    rule="NET005",
    says="a task's port was taken when it wanted to listen there",
    fix="ss -ltnp   # which port of this host in the cluster is held, and by whom? end that program, or take "
    "another port in TF_CONFIG",
    proves_not=_WHO_HOLDS,
    sample='E1214 10:12:13.123456789    4711 server_chttp2.cc:40] {"created":"@1576318333.1",'
    '"description":"No address added out of total 1 resolved","file":"server_chttp2.cc",'
    '"referenced_errors":[{"description":"Unable to configure socket","os_error":"Address already in '
    'use","syscall":"bind"}]}',
    source="its wording from the source of gRPC 1.1 to 1.50, in TensorFlow 1.1 to 2.12",
)
CUT = KnownMessage(
    key=_KEY,
    pattern=r'"description":"No address added out of total \d+ resolved"'
    r"(?![^\n]{0,1150}(?:os_error|Address already in use|Only one usage|Cannot assign|not valid in its))",
    rule="NET005",
    says="a task's server could not listen on its port; the line breaks off before the reason, which is "
    "mostly that the port is taken",
    fix="ss -ltnp   # on its host: is the task's port of the cluster held, and by whom? End that program, or "
    "take another port in TF_CONFIG; else the rest of that line says why",
    proves_not="that the port is taken: an address of another host looks the same",
    sample='E1214 10:12:13.123456789    4711 server_chttp2.cc:40] {"created":"@1576318333.1",'
    '"description":"No address added out of total 1 resolved","file":"server_chttp2.cc",'
    '"referenced_errors":[{"description":"Unable to configure socket","fd":7,"fi',
    source="its wording from the source of gRPC 1.1 to 1.50, in TensorFlow 1.1 to 2.12",
)
"""The same, cut by who pasted it."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    listening = _LISTENS.search(exhibit.text)
    port = listening["port"] if listening is not None else ""
    unnamed = (_with_port(h, port) for h in find_known_messages(exhibit, (UNNAMED,)))
    heard = (*find_known_messages(exhibit, MESSAGES), *unnamed)
    heard = heard or find_known_messages(exhibit, (CUT,))[:1]
    if NO_NAME.key in exhibit.text and not _LATER.search(
        exhibit.text, exhibit.text.rfind(NO_NAME.key)
    ):
        heard += find_known_messages(exhibit, (NO_NAME,))[-1:]
    return Testimony(heard=heard) if heard else None


def _with_port(heard: Heard, port: str) -> Heard:
    """Return the message with the port that the process said before that it listens on, if it did."""
    if not port:
        return heard
    return msgspec.structs.replace(
        heard,
        says=MESSAGES[0].says.format(port=port, port2=""),
        fix=MESSAGES[0].fix.format(port=port, port2=""),
    )


READER = LogReader(read=read_log)
