"""Messages between tasks that are larger than protobuf or gRPC lets through.

Who waits for such a message looks as if its sender were gone.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony

_FOLLOW = ("EXIT005", "EXIT012", "LOG012", "LOG002")
"""Rules of a peer that seems lost because of it."""
MESSAGES = (
    KnownMessage(
        key="exceeded maximum protobuf size of 2GB",
        pattern=r"(?P<what>[\w.]{1,120}) exceeded maximum protobuf size of 2GB(?:: (?P<size>\d{1,20}))?",
        rule="LOG013",
        says="a message between tasks ({what}) is larger than 2 GB, which protobuf cannot carry: the tasks "
        "seem lost to each other",
        fix="smaller tensors: shard the large variable (an embedding) over servers, fewer rows a step, or "
        "tf.distribute.experimental.CommunicationOptions(bytes_per_pack=50 * 1024 * 1024) and NCCL",
        explains=_FOLLOW,
        sample="[libprotobuf ERROR message_lite.cc:451] tensorflow.RecvBufRespExtra exceeded maximum "
        "protobuf size of 2GB: 5368538440",
        source="its wording from the source of protobuf 3.2 to 3.21 (message_lite.cc)",
    ),
    KnownMessage(
        key="because it was too big (more than ",
        pattern=r"A protocol message was rejected because it was too big \(more than "
        r"(?P<limit>\d{1,12}) bytes\)",
        rule="LOG013",
        says="a message between tasks was rejected: it is larger than protobuf's limit of {limit} bytes here",
        fix="pip install --upgrade tensorflow protobuf   # on all members: the limit of 64 MiB is that of "
        "old versions (TensorFlow before 0.10); else shard the large variable, or feed less at once",
        explains=_FOLLOW,
        sample="A protocol message was rejected because it was too big (more than 67108864 bytes).",
        source="its wording from the source of protobuf 2.6 to 3.5 (coded_stream.cc)",
    ),
    KnownMessage(
        key=" message larger than max",
        pattern=r"(?P<which>Received|Sent) message larger than max \((?P<size>\d{1,20}) vs\.? "
        r"(?P<limit>\d{1,20})\)",
        rule="LOG013",
        says="gRPC refused a message of {size} bytes: the limit of this channel is {limit}",
        fix="raise the limit on both sides, in the library's own setting before it starts "
        "(grpc.max_receive_message_length, grpc.max_send_message_length), or send smaller batches; above "
        "2147483647 no limit helps: split the tensor",
        explains=_FOLLOW,
        sample="Resource exhausted:Received message larger than max (8066392 vs. 4194304)",
        source="its wording from the source of gRPC 1.0 to 1.70 (message_size_filter.cc)",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = tuple(h for m in MESSAGES for h in find_known_messages(exhibit, (m,))[:1])
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
