"""Passwords that programs take after a flag of one letter, which means something else for most programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from allaboard.formats.secret_names import REDACTED, is_password
from allaboard.late_pattern import compile_late

_NUMBERS = compile_late(r"[\d.:]*\Z")


class Client(NamedTuple):
    """Programs that take a password in the same way."""

    programs: tuple[str, ...]
    """Their names."""
    flags: str
    """Letters of the flags that a password follows."""
    is_joined: bool = True
    """True if the password may follow its flag without a blank."""
    is_separate: bool = True
    """True if the next word is the password; else it is only if it looks like one."""
    has_user: bool = False
    """True if it is NAME:PASSWORD."""
    verb: str = ""
    """Word that must come before the flag; "" for none."""


_REGISTRIES = ("docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras")
CLIENTS = (
    Client(
        (
            *("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow", "mysqlsh"),
            *("mariadb", "mariadb-dump", "mariadb-admin"),
        ),
        "p",
        is_separate=False,  # `mysql -p jobs` asks for the password, and jobs is the database
    ),
    Client(("sshpass",), "p"),
    Client(_REGISTRIES, "p", verb="login"),
    Client(("curl",), "uU", has_user=True),
    Client(("redis-cli",), "a", is_joined=False),
    Client(("mongo", "mongosh", "mongodump", "mongorestore", "cqlsh", "az"), "p", is_joined=False),
    Client(("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami"), "w", is_joined=False),
    Client(("sqlcmd", "mosquitto_pub", "mosquitto_sub", "zip", "unzip"), "P", is_joined=False),
    Client(("7z", "7za"), "p", is_separate=False),
)  # fmt: skip
CLIENT_OF = {program: client for client in CLIENTS for program in client.programs}
_PROGRAMS = "|".join(sorted(map(re.escape, CLIENT_OF), key=len, reverse=True))
_STEP = compile_late(
    r"(?P<end>[\n|;&]+)"
    rf"|(?<![\w.-])(?P<program>{_PROGRAMS})(?![\w.-])"
    r"|(?<![\w.-])(?P<verb>login)(?![\w.-])"
    r"|(?<=[\s\"'])-(?P<flag>[pauUPw])(?P<gap>=?[\"',\s]{0,8}|=)(?P<value>[^\s\"',;&|\\]{1,256})"
)
"""Matches what matters in a command line: its parts in the order in which they stand."""


def redact_client_passwords(text: str, count: Callable[[], None]) -> str:
    """Return the text without passwords of `CLIENTS`; ``count`` is called for each."""
    pieces, position = [], 0
    for start, end in _spans(text):
        count()
        pieces += [text[position:start], REDACTED]
        position = end
    return "".join([*pieces, text[position:]])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    client, is_ready = None, False
    for step in _STEP.finditer(text):
        if step["end"] is not None:
            client = None
        elif step["program"] is not None:
            client = CLIENT_OF[step["program"]]
            is_ready = not client.verb
        elif step["verb"] is not None:
            is_ready = is_ready or (client is not None and client.verb == "login")
        elif client is not None and is_ready and step["flag"] in client.flags:
            value = password_after_flag(client, step["value"], not step["gap"].strip("="))
            if value:
                yield step.end() - len(value), step.end()


def password_after_flag(client: Client, value: str, is_joined: bool) -> str:
    """Return the password in what follows a flag of this program, or ""; ``is_joined``: without a blank."""
    if client.has_user:
        _, colon, value = value.partition(":")
        is_joined = True
        if not colon or _NUMBERS.match(value):
            return ""
    if not value or value.startswith((REDACTED, "-")):
        return ""
    if is_joined:
        return value if client.is_joined else ""
    return value if client.is_separate or is_password(value) else ""


def client_of_command(words: Sequence[str]) -> Client | None:
    """Return the first of `CLIENTS` among the words of a command, if its verb is among them too."""
    for word in words:
        client = CLIENT_OF.get(word.rpartition("/")[2])
        if client is not None:
            return client if not client.verb or client.verb in words else None
    return None
