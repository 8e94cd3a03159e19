"""Attachments of a bug report in one archive: the diagnosis, logs, versions; without secrets."""

from __future__ import annotations

import io
import os
import platform
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import msgspec

from allaboard import __version__
from allaboard.diagnosis.logs.input_files import read_exhibits
from allaboard.facts import HostLook
from allaboard.feed.feed_secret import SECRET_NAME
from allaboard.formats.redacted_records import redact_document, redact_record
from allaboard.formats.redaction import secrets_of
from allaboard.hosts.fingerprint import relevant_variables
from allaboard.hosts.rank_processes import RENDEZVOUS_VARIABLES

PACKAGES = ("torch", "tensorflow", "tensorflow-cpu", "tf_keras", "keras", "jax", "jaxlib", "numpy",
            "protobuf", "grpcio", "accelerate", "deepspeed", "horovod", "lightning", "ray", "mpi4py",
            "allaboard", "py-spy")  # fmt: skip
_ZERO = b"\0"


class Packed(NamedTuple):
    """What was packed."""

    contents: list[str]
    """A line for each file."""
    removed: Counter[str]
    """How many secrets of each kind were removed."""

    def removed_lines(self) -> list[str]:
        """Return what was removed, a line for each kind of secret."""
        counted = [(kind, n) for kind, n in self.removed.most_common() if n]
        if not counted:
            return ["no secrets were found in it"]
        return ["removed from it:", *(f"{n:>6} {kind}" for kind, n in counted)]


class _Cleaner(NamedTuple):
    secrets: list[str]
    removed: Counter[str]

    def clean(self, text: str) -> str:
        return redact_document(text, self.secrets, self.removed)


def pack_bundle(
    out: Path,
    answers: Mapping[str, str],
    paths: Sequence[Path] = (),
    looks: Sequence[HostLook] = (),
) -> Packed:
    """Write ``out`` (a gzipped tar, mode 0600) and return what is in it; its ``redacted.txt`` counts secrets.

    Args:
        answers: texts by file name: what `diagnose` said.
        paths: run folders, logs, dumps; binary files are left out, since nothing can be redacted there.
        looks: what was seen of living processes.

    Raises:
        OSError: the archive cannot be written.
    """
    cleaner = _Cleaner(secrets_of(os.environ), Counter())
    top = f"allaboard-{time.strftime('%Y%m%d-%H%M%S')}"
    packed = Packed([], cleaner.removed)
    partial = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        # For its owner alone from the first byte on, and never somebody else's file or link.
        descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            for name, text in _texts(answers, paths, looks, cleaner, packed):
                data = text.encode("utf-8", "replace")
                entry = tarfile.TarInfo(f"{top}/{name}")
                entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
                tar.addfile(entry, io.BytesIO(data))
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return packed


def _texts(
    answers: Mapping[str, str],
    paths: Sequence[Path],
    looks: Sequence[HostLook],
    cleaner: _Cleaner,
    packed: Packed,
) -> Iterator[tuple[str, str]]:
    contents = packed.contents
    for name, text in answers.items():
        contents.append(name)
        yield name, cleaner.clean(text)
    contents.append("host.txt")
    yield "host.txt", cleaner.clean("".join(f"{line}\n" for line in _host()))
    for look in looks:
        name = f"processes-{_safe_name(look.host)}.json"
        contents.append(name)
        look = redact_record(look, cleaner.secrets, cleaner.removed)
        yield name, msgspec.json.format(msgspec.json.encode(look), indent=2).decode()
    yield from _files(paths, cleaner, contents)
    contents.append("redacted.txt")
    yield "redacted.txt", "".join(f"{line}\n" for line in packed.removed_lines())


def _files(
    paths: Sequence[Path], cleaner: _Cleaner, contents: list[str]
) -> Iterator[tuple[str, str]]:
    notes: list[str] = []
    for position, path in enumerate(paths):
        for exhibit in read_exhibits([path], notes):
            file = Path(exhibit.name)
            if file.name == SECRET_NAME:
                continue  # whoever has it reads the feed of a run that still lasts
            if not file.resolve().is_relative_to(path.resolve()):
                # Nobody sees by its name that this log is a key or a password file of whoever packs it.
                notes.append(f"{exhibit.name}: a link to a file outside of {path}, left out")
                continue
            relative_name = file.name if file == path else str(file.relative_to(path))
            name = f"{position}-{_safe_name(path.resolve().name)}/{relative_name}"
            if _ZERO in exhibit.data[:4096]:
                notes.append(f"{exhibit.name}: binary, left out")
                continue
            cut = f", {exhibit.cut} bytes of its middle left out" if exhibit.cut else ""
            contents.append(name + cut)
            yield name, cleaner.clean(exhibit.data.decode("utf-8", "replace"))
    if notes:
        contents.append("left-out.txt")
        yield "left-out.txt", cleaner.clean("".join(f"{n}\n" for n in notes))


def _host() -> Iterator[str]:
    """Yield lines on the machine and the packages where allaboard runs; no name of a person or a folder."""
    yield f"allaboard {__version__}, Python {platform.python_version()} ({sys.platform})"
    yield f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs"
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    yield f"memory {memory >> 20} MiB, load {os.getloadavg()[0]:.1f}"
    for name in PACKAGES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    rendezvous = {n: os.environ[n] for n in RENDEZVOUS_VARIABLES if n in os.environ}
    for name, value in sorted({**relevant_variables(os.environ), **rendezvous}.items()):
        yield f"{name}={value}"


def _safe_name(name: str) -> str:
    characters = "".join(c if c.isalnum() or c in "._-" else "-" for c in name)
    return characters.strip(".") or "given"
