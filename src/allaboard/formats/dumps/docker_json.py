"""Docker's own files of a container's output (the driver json-file): one JSON object a line. Pure."""

from __future__ import annotations

import msgspec

_BEGIN = b'{"log":"'
_STREAM = b'"stream":"std'


class _Record(msgspec.Struct):
    log: str


def unwrap_docker_lines(data: bytes) -> bytes:
    """Return the container's output, one line for each of the file's; other data is returned as it is."""
    if not data.startswith(_BEGIN) or _STREAM not in data.partition(b"\n")[0]:
        return data
    decoder = msgspec.json.Decoder(_Record)
    return b"\n".join(_decode_line(line, decoder) for line in data.split(b"\n"))


def _decode_line(line: bytes, decoder: msgspec.json.Decoder[_Record]) -> bytes:
    """Return the text of a line, or the line itself if it is torn."""
    try:
        return decoder.decode(line).log.rstrip("\n").replace("\n", " ").encode()
    except (msgspec.DecodeError, UnicodeEncodeError):
        return line
