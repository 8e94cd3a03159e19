"""Logs of parameter servers other than TensorFlow's: those of BytePS and ps-lite under it, where workers,
servers and one scheduler meet, and Paddle's; and of OneFlow, whose members meet at servers of their own."""

from __future__ import annotations

import re

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.control_server_messages import CAME, MACHINE_LOST, UNREACHED
from allaboard.facts import Exhibit, Heard, Severity, Testimony

NOT_SET = KnownMessage(
    key="Environment::Get()->find(",
    pattern=r"Check  ?(?:notnull|failed): (?:ps::)?Environment::Get\(\)->find\(\"(?P<name>\w{1,60})\"\)",
    rule="LOG013",
    says="ps-lite (MXNet, BytePS) found no {name} in the environment of a process",
    fix="export {name}=...   # for each process: DMLC_ROLE (worker, server, scheduler), DMLC_NUM_WORKER, "
    "DMLC_NUM_SERVER, DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT of the scheduler, DMLC_WORKER_ID; and start it "
    "with bpslaunch (MXNet: tools/launch.py -n N -H HOSTFILE COMMAND)",
    explains=("LOG011", "LOG012", "EXIT001"),
    sample='[01:04:50] src/postoffice.cc:32: Check  notnull: Environment::Get()->find("DMLC_ROLE")',
    source="its wording from the source of ps-lite, in BytePS 0.1 to 0.2 and MXNet (postoffice.cc)",
)
WAITS = KnownMessage(
    key="Start ZMQ recv thread",
    pattern=r"Start ZMQ recv thread",
    rule="JOIN001",
    says="a worker of BytePS waits for the scheduler, which counts all workers and servers: the log ends "
    "there",
    fix="nc -vz $DMLC_PS_ROOT_URI $DMLC_PS_ROOT_PORT   # from the worker's host: does the scheduler listen? "
    "DMLC_NUM_WORKER and DMLC_NUM_SERVER must be the same everywhere, and as many must run; DMLC_INTERFACE "
    "names the network; PS_VERBOSE=2 at the scheduler shows who has come",
    proves_not="that it still waits: the log of a start that goes on ends there too",
    severity=Severity.WARNING,
    awaits=True,
    sample="[07:38:39] src/./zmq_van.h:299: Start ZMQ recv thread",
    source="its wording from the source of ps-lite, in BytePS 0.1 to 0.2 (zmq_van.h)",
)
PADDLE_SERVER = KnownMessage(
    key="] grpc error:",
    pattern=r"ep:\[(?P<host>[^\]\s:]{1,255}):(?P<port>\d{1,5})\] grpc error:(?P<why>Connect Failed"
    r"|Deadline Exceeded|[A-Z][\w ]{3,60})",
    rule="PS001",
    says="Paddle's parameter server at {host}:{port} answered no more ({why})",
    fix="read the log of the server at {host} port {port} first: did it end, or had it finished? From here: "
    "nc -vz {host} {port}",
    proves_not="that it ended: one that is stuck or behind a firewall looks the same",
    awaits=True,
    explains=("EXIT002", "LOG012"),
    sample="E0119 21:26:14.529606 16639 grpc_client.cc:119] proc param error:name:[fc_0.w_0@GRAD] "
    "ep:[172.17.0.5:6174] grpc error:Connect Failed",
    source="its wording from the source of PaddlePaddle 0.11 to 1.8 (grpc_client.cc)",
)
MIN_LINES_AFTER = 3
"""Lines of a training after a loss that show that it goes on."""
_TRIED = re.compile(r"LoadServer +([\w.:-]{1,255}) Failed at ")
_REACHED = re.compile(r"LoadServer +([\w.:-]{1,255}) Successful at ")
_WORKER = re.compile(r"BytePS launching worker")


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    heard = find_known_messages(exhibit, (NOT_SET,))[:1]
    final_line = text.rstrip().rpartition("\n")[2]
    if not heard and WAITS.key in final_line and _WORKER.search(text):
        heard = find_known_messages(exhibit, (WAITS,))[-1:]
    if not trains_on_after(text, PADDLE_SERVER.key, MIN_LINES_AFTER):
        # Several servers, or several variables of one: the first is the news.
        heard += find_known_messages(exhibit, (PADDLE_SERVER,))[:1]
    heard += find_known_messages(exhibit, (MACHINE_LOST,))
    if not heard:
        heard = _unreached_servers(exhibit)
    return Testimony(heard=heard) if heard else None


def _unreached_servers(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return the servers of OneFlow that its member still tries to reach where the log ends."""
    text = exhibit.text
    if CAME not in text or trains_on_after(text, CAME, MIN_LINES_AFTER):
        return ()
    reached_hosts = set(_REACHED.findall(text))
    attempts = find_known_messages(exhibit, UNREACHED)
    return tuple(
        h for h in attempts if not reached_hosts.intersection(_TRIED.findall(h.speakers[0].line))
    )


READER = LogReader(read=read_log)
