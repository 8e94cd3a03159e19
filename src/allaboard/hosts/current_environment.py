"""The environment of a running process as it is now, read from its memory without pausing it.

/proc/PID/environ shows only what a process was started with. What the program set later (``os.environ[...]
=``, which calls setenv(3)) is in the array that the C library's variable ``environ`` points to. The
variable is found in the dynamic symbol table of the program, or of the library that defines it; formats are
those of elf(5).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from allaboard.hosts import proc
from allaboard.late_pattern import compile_late

MAX_VARIABLES = 20_000
"""Variables of one process that are read."""
MAX_VALUE_BYTES = 1 << 20
"""Bytes of one variable that are read."""
MAX_TABLE_BYTES = 32 << 20
"""Bytes of a symbol or string table that are read: no file is trusted."""
_SYMBOLS = (b"environ", b"__environ", b"_environ")
_DEFINERS = compile_late(r"/(?:libpython[^/]*|libc[.-][^/]*|libc\.musl[^/]*|ld-musl[^/]*)$")
_READ_BLOCK = 4096
_DYNAMIC_SYMBOLS = 11
"""SHT_DYNSYM."""
_EXECUTABLE_AT_FIXED_ADDRESS = 2
"""ET_EXEC: its addresses are not relative to where it was loaded."""


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int


def current_environment(pid: int) -> dict[str, str]:
    """Return the whole environment that the process has now; the initial one where its memory cannot be read.

    It holds secrets: never show or keep it.
    """
    initial = proc.initial_environment(pid)
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for address in _environ_addresses(pid):
                variables = dict(_variables_at(memory, address))
                # A pointer that leads elsewhere (a stripped symbol, an unknown layout) yields no such pairs.
                if variables:
                    return variables
    except (OSError, ValueError, struct.error, OverflowError):
        pass
    return initial


def _environ_addresses(pid: int) -> Iterator[int]:
    """Yield the addresses of the variable ``environ``: the program's own copy of it first, which the dynamic
    linker uses if there is one (R_*_COPY), then the libraries'."""
    bases: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/maps").read_text("utf-8", "replace").splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5].startswith("/") and int(fields[2], 16) == 0:
            bases.setdefault(fields[5], int(fields[0].partition("-")[0], 16))
    program = os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - the text, as maps(5) has it
    libraries = [path for path in bases if path != program and _DEFINERS.search(path)]
    for path in (program, *libraries):
        if path in bases:
            # Through the process's own root: it may be in a container.
            with Path(f"/proc/{pid}/root{path}").open("rb") as file:
                yield from _symbol_addresses(file, bases[path])


def _symbol_addresses(file: BinaryIO, base: int) -> Iterator[int]:
    """Yield where this 64-bit ELF file, loaded at ``base``, defines the variable."""
    header = file.read(64)
    if header[:5] != b"\x7fELF\x02":
        return
    order = "<" if header[5] == 1 else ">"
    kind = struct.unpack_from(f"{order}H", header, 16)[0]
    table_offset = struct.unpack_from(f"{order}Q", header, 40)[0]
    entry_size, count = struct.unpack_from(f"{order}HH", header, 58)
    sections = list(_sections(file, order, table_offset, entry_size, count))
    for section in sections:
        if section.kind != _DYNAMIC_SYMBOLS or section.link >= len(sections):
            continue
        symbols, names = _read(file, section), _read(file, sections[section.link])
        name_offsets = {names.find(b"\0" + name + b"\0") + 1 for name in _SYMBOLS} - {0}
        for name_offset, _, _, section_index, value, _ in struct.iter_unpack(
            f"{order}IBBHQQ", symbols[: len(symbols) // 24 * 24]
        ):
            # A longer name may end in this one, and linkers share such tails.
            if (
                section_index
                and value
                and (name_offset in name_offsets or _name_at(names, name_offset) in _SYMBOLS)
            ):
                yield value if kind == _EXECUTABLE_AT_FIXED_ADDRESS else base + value


def _name_at(names: bytes, offset: int) -> bytes:
    return names[offset : offset + 10].partition(b"\0")[0]


def _sections(
    file: BinaryIO, order: str, offset: int, entry_size: int, count: int
) -> Iterator[_Section]:
    file.seek(offset)
    table = file.read(entry_size * count)
    for number in range(count):
        fields = struct.unpack_from(f"{order}IIQQQQII", table, number * entry_size)
        yield _Section(kind=fields[1], offset=fields[4], size=fields[5], link=fields[6])


def _read(file: BinaryIO, section: _Section) -> bytes:
    file.seek(section.offset)
    return file.read(min(section.size, MAX_TABLE_BYTES))


def _variables_at(memory: BinaryIO, address: int) -> Iterator[tuple[str, str]]:
    """Yield the variables of the array that the pointer at this address points to."""
    array = struct.unpack("=Q", _memory(memory, address, 8))[0]
    for number in range(MAX_VARIABLES):
        entry = struct.unpack("=Q", _memory(memory, array + 8 * number, 8))[0]
        if entry == 0:
            return
        name, equals, value = _string_at(memory, entry).decode("utf-8", "replace").partition("=")
        if equals and name:
            yield name, value


def _string_at(memory: BinaryIO, address: int) -> bytes:
    text = b""
    while len(text) < MAX_VALUE_BYTES:
        # Up to the end of the page: the next one may not be mapped.
        block = _memory(memory, address, _READ_BLOCK - address % _READ_BLOCK)
        head, end, _ = block.partition(b"\0")
        text += head
        if end:
            break
        address += len(block)
    return text


def _memory(memory: BinaryIO, address: int, size: int) -> bytes:
    memory.seek(address)
    data = memory.read(size)
    if len(data) < min(size, 8) or not data:
        raise ValueError(f"no memory at {address:#x}")
    return data
