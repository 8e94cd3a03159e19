"""Archives of logs: read as the folders that they were made of, whatever somebody has put into them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.diagnosis.logs.input_files import MAX_FOUND_ARCHIVE_BYTES, read_exhibits
from allaboard.diagnosis.logs.packed.archives import ARCHIVE_TIMEOUT_S, MAX_READ_BYTES
from allaboard.rules.engine.catalogue import load_catalogue

STEP = b"step 100 loss 0.5\n"
RAISED = b"""Traceback (most recent call last):
  File "/h/train.py", line 20, in main
ValueError: bad label
"""
LOGS = {"job/rank0.log": STEP, "job/rank1.log": STEP + RAISED}


def make_tar(path: Path, mode: str = "w", logs: dict[str, bytes] = LOGS) -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in logs.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def make_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("job/", "")
        for name, data in LOGS.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("logs.tar", make_tar),
        ("logs.tar.gz", lambda p: make_tar(p, "w:gz")),
        ("logs.tar.bz2", lambda p: make_tar(p, "w:bz2")),
        ("logs.tar.xz", lambda p: make_tar(p, "w:xz")),
        ("attachment", lambda p: make_tar(p, "w:gz")),
        ("logs.zip", make_zip),
    ],
)
def test_an_archive_is_read_like_its_folder(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    archive = tmp_path / name
    make(archive)
    diagnosis = diagnose_paths([archive], load_catalogue())
    (finding,) = diagnosis.findings
    assert finding.rule == "EXIT002" and [w.rank for w in finding.who] == [1]
    assert f"{archive}/job/rank1.log:2" in str(finding.evidence)
    assert not diagnosis.notes


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_log_is_read_also_within_an_archive(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    packed = compress(STEP) + compress(RAISED)
    file = tmp_path / "rank2.log.packed"
    file.write_bytes(packed)
    make_tar(tmp_path / "logs.tar", logs={"rank2.log.packed": packed})
    for path in (file, tmp_path / "logs.tar"):
        (exhibit,) = read_exhibits([path], [])
        assert exhibit.data == STEP + RAISED and exhibit.rank == 2


def test_links_devices_and_names_that_lead_out_are_only_names(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "logs.tar", "w") as archive:
        for kind, target in ((tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "/etc/passwd")):
            entry = tarfile.TarInfo("link")
            entry.type, entry.linkname = kind, target
            archive.addfile(entry)
        entry = tarfile.TarInfo("pipe")
        entry.type = tarfile.FIFOTYPE
        archive.addfile(entry)
        entry = tarfile.TarInfo("/../../etc/rank1.log")
        entry.size = len(STEP)
        archive.addfile(entry, io.BytesIO(STEP))
    names = [e.name for e in read_exhibits([tmp_path / "logs.tar"], [])]
    assert names == [f"{tmp_path}/logs.tar/etc/rank1.log"]


def test_a_header_that_claims_gigabytes_is_refused(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, 8 << 30
    file = tmp_path / "logs.tar.gz"
    file.write_bytes(
        gzip.compress(entry.tobuf(tarfile.GNU_FORMAT)) + gzip.compress(bytes(64 << 20)) * 8
    )
    notes: list[str] = []
    tracemalloc.start()
    try:
        assert list(read_exhibits([file], notes)) == []
        assert tracemalloc.get_traced_memory()[1] < 2 * MAX_READ_BYTES
    finally:
        tracemalloc.stop()
    assert notes == [
        f"{file}: the rest of the archive was not read: a header in it claims more than any log has"
    ]


def test_of_a_truncated_archive_all_before_is_read(tmp_path: Path) -> None:
    file = tmp_path / "logs.tar"
    make_tar(file, logs={"rank0.log": STEP, "rank1.log": STEP * 1000})
    file.write_bytes(file.read_bytes()[:4000])
    notes: list[str] = []
    exhibits = list(read_exhibits([file], notes))
    assert [e.rank for e in exhibits] == [0, 1] and exhibits[0].data == STEP
    assert exhibits[1].data.startswith(STEP)
    assert any("was not unpacked" in n for n in notes) and any(
        "rest of the archive" in n for n in notes
    )


def test_an_archive_that_takes_too_long_is_left(tmp_path: Path) -> None:
    file = tmp_path / "logs.tar.gz"
    make_tar(file, "w:gz", {f"rank{n}.log": STEP for n in range(9)})
    clock = (n * ARCHIVE_TIMEOUT_S / 20 for n in count())
    notes: list[str] = []
    read = list(read_exhibits([file], notes, lambda: next(clock)))
    assert 0 < len(read) < 9
    assert notes == [
        f"{file}: the rest of the archive was not read: {ARCHIVE_TIMEOUT_S:.0f} s are over"
    ]


def test_a_zip_with_a_password_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "logs.zip"
    make_zip(file)
    data = bytearray(file.read_bytes())
    for signature, flags_at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = 0
        while (start := data.find(signature, start)) >= 0:
            data[start + flags_at] |= 1  # "encrypted": APPNOTE.TXT, 4.4.4
            start += 4
    file.write_bytes(data)
    notes: list[str] = []
    assert list(read_exhibits([file], notes)) == []
    assert len(notes) == 1 and "password" in notes[0] and "unpack it first" in notes[0]


@pytest.mark.parametrize(
    ("magic", "command"), [(b"\x28\xb5\x2f\xfd", "zstd -d"), (b"7z\xbc\xaf\x27\x1c", "7z x")]
)
def test_what_cannot_be_unpacked_here_says_by_what_it_can(
    tmp_path: Path, magic: bytes, command: str
) -> None:
    file = tmp_path / "my logs"
    file.write_bytes(magic + bytes(100))
    diagnosis = diagnose_paths([file], load_catalogue())
    assert any(f"{command} '{file}'" in note for note in diagnosis.notes)


def test_large_archives_in_a_folder_are_taken_for_data(tmp_path: Path) -> None:
    shard = tmp_path / "shard-0.tar"
    make_tar(shard, logs={"rank1.log": RAISED})
    with shard.open("r+b") as file:
        file.truncate(MAX_FOUND_ARCHIVE_BYTES + 1)
    checkpoint = tmp_path / "model.pt"
    make_zip(checkpoint)
    assert [e.name for e in read_exhibits([tmp_path], [])] == [str(checkpoint), str(shard)]
    assert [e.name for e in read_exhibits([shard], [])] == [f"{shard}/rank1.log"]
