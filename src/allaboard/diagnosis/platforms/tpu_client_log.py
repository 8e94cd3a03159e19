"""What clients of a TPU write if they cannot reach it, or if another process holds it."""

from __future__ import annotations

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Severity, Testimony
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

MASTER = KnownMessage(
    key="Failed to connect to the Tensorflow master",
    pattern=r"Failed to connect to the Tensorflow master\. The TPU worker may not be ready"
    r"[^\n]{0,100}?incorrect(?:: got \((?:grpc://)?(?P<address>[\w.:\[\]-]{1,120})\))?",
    rule="JOIN001",
    says="the TPU does not answer this program at {address}",
    fix="gcloud compute tpus list   # state READY, and this address? The address is a private one: run the "
    "program on a machine of the same network and zone (a VM of Compute Engine), not on your own; then "
    "nc -vz HOST 8470 from there",
    proves_not="that the TPU does not run: from another network it looks the same",
    awaits=True,
    sample="W0108 00:47:24.46 1 tpu_system_metadata.py:97] Failed to connect to the Tensorflow master. The "
    "TPU worker may not be ready (still scheduling) or the Tensorflow master address is incorrect: got "
    "(grpc://192.0.2.2:8470).",
    source="its wording from the source of TensorFlow 1.9 to 2.21 (tpu/tpu_system_metadata.py)",
)
INPUT = KnownMessage(
    key="failed to connect to all addresses",
    pattern=r"failed to connect to all addresses[^\n]{0,400}\n[^\n]{0,200}remote target "
    r"/job:localhost/replica:\d+/task:\d+/device:CPU:\d+:(?=.{0,1100}?(?:MultiDeviceIterator|RemoteCall|TPU))",
    rule="LOG013",
    says="the TPU's host could not fetch its input from this program: the data is read here, and a TPU "
    "node cannot connect back",
    fix="let the TPU's host read it: tf.data.TFRecordDataset of files at gs://BUCKET, without "
    "from_generator, py_function and local files; or a TPU VM, where the program runs beside the TPU",
    proves_not="that the TPU still runs: gcloud compute tpus list shows it (PREEMPTED?)",
    explains=("EXIT002", "EXIT005", "LOG012"),
    sample="Unavailable: failed to connect to all addresses\nAdditional GRPC error information from remote "
    "target /job:localhost/replica:0/task:0/device:CPU:0:\n\t [[MultiDeviceIteratorGetNextFromShard]]",
    source="its wording from users' reports of TensorFlow 2.2 to 2.15 on TPU nodes",
)
IN_USE = tuple(
    KnownMessage(
        key=key,
        pattern=pattern,
        rule="RES005",
        says=says,
        fix=fix,
        explains=("LOG012", "EXIT002"),
        sample=sample,
        source=source,
    )
    for key, pattern, says, fix, sample, source in (
        (
            "TPU is already in use by ",
            r"TPU is already in use by process with pid (?P<holder>\d{1,9})",
            "another process of this host, pid {holder}, holds the TPU: this one got none, and goes on "
            "without it",
            "ps -fp {holder}   # of an earlier run? End it: kill {holder}. One process takes all chips of "
            "a host, unless TPU_VISIBLE_CHIPS and TPU_PROCESS_BOUNDS share them out",
            "ABORTED: The TPU is already in use by process with pid 176028. Not attempting to load "
            "libtpu.so in this process.",
            "its wording from the source of TensorFlow 2.9 to 2.21 (tpu_initializer_helper.cc), in JAX",
        ),
        (
            "libtpu.so already in use",
            r"libtpu\.so already in used? by another process",
            "another process of this host holds the TPU: this one got none, and goes on without it",
            "sudo lsof -w /dev/accel0 /dev/vfio/*   # who holds it? End what is left of an earlier run; "
            "if nobody does: sudo rm /tmp/libtpu_lockfile, which another user may own",
            "I0000 00:00:1 19 f236.cc:165] libtpu.so already in use by another process probably owned by "
            "another "
            'user. Run "$ sudo lsof -w /dev/accel0" to figure out which process is using the TPU.',
            "its wording from the source of TensorFlow 2.6 to 2.8 (tpu_api_dlsym_initializer.cc), in JAX",
        ),
    )
)
BROKEN = KnownMessage(
    key="grpc_remote_master.cc",
    pattern=r"grpc_remote_master\.cc:\d+\] RPC failed with status = \"Unavailable: (?P<why>Socket closed"
    r"|Connection reset by peer|failed to connect to all addresses)\".{0,500}?\"description\":\"Error "
    r"received from peer(?: ipv[46]:(?P<address>[\w.:\[\]%*-]{3,80}))?",
    rule="EXIT005",
    says="the connection to the TPU's server {address} broke ({why})",
    fix="gcloud compute tpus list   # state READY, or PREEMPTED, or under maintenance? Its memory may have "
    "run "
    "out: fewer or smaller inputs on its host; create or restart it (gcloud compute tpus stop, start), then "
    "start again from the last checkpoint",
    proves_not="that the TPU ended: a link that broke looks the same, and TensorFlow tries again",
    severity=Severity.WARNING,
    awaits=True,
    explains=("LOG012",),
    sample="W 2250 tensorflow/core/distributed_runtime/rpc/grpc_remote_master.cc:160] RPC failed with "
    "status = "
    '"Unavailable: Socket closed" and grpc_error_string = "{"created":"@1595184763.783222230","description":'
    '"Error received from peer ipv4:192.0.2.2:8470","file":"external/call.cc","file_line":1056,'
    '"grpc_message":"Socket closed","grpc_status":14}", maybe retrying the RPC',
    source="its wording from the source of TensorFlow 1.13 to 2.9 (grpc_remote_master.cc)",
)
MIN_ATTEMPTS = 2
"""Attempts in vain; each is written twice by TensorFlow's logger."""
_CAME = "Found TPU system"
MIN_STEPS_AFTER = 2
"""Lines about loss or steps after a broken connection that show that it was made anew."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    heard = find_known_messages(exhibit, (INPUT,))[:1]
    for message in IN_USE:
        # Processes that share a host's TPU under one parent warn of each other, and train; an exception is
        # reported with its place.
        goes_on = trains_on_after(text, message.key, 1)
        if not heard and not goes_on and TRACEBACK_HEAD not in text:
            heard += find_known_messages(exhibit, (message,))[:1]
    if text.count(MASTER.key) >= MIN_ATTEMPTS and _CAME not in text[text.rfind(MASTER.key) :]:
        heard += tuple(map(_without_address, find_known_messages(exhibit, (MASTER,))[-1:]))
    if not heard and not trains_on_after(text, BROKEN.key, MIN_STEPS_AFTER):
        heard += tuple(map(_without_address, find_known_messages(exhibit, (BROKEN,))[-1:]))
    return Testimony(heard=heard) if heard else None


def _without_address(heard: Heard) -> Heard:
    """Return the message without the end of its sentence, if the log does not tell the address."""
    says = heard.says.removesuffix(" at ").replace("server  broke", "server broke")
    return msgspec.structs.replace(heard, says=says)


READER = LogReader(read=read_log)
