"""Removal of secrets from texts that others may read: values that are named like secrets, or look like them.

All that allaboard writes about a job goes through `redact_text` and `redact_command`: the terminal, journal,
report, feed, pages and bundles. It removes too much rather than too little, but it leaves what a person
needs: paths, numbers, and names of what only looks similar. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from allaboard.formats import private_keys
from allaboard.formats.client_passwords import (
    CLIENT_OF,
    client_of_command,
    password_after_flag,
    redact_client_passwords,
)
from allaboard.formats.named_secrets import redact_named_secrets, redact_variables_of_pods
from allaboard.formats.secret_names import (
    KEYWORD_HINTS,
    REDACTED,
    SECRET_FLAGS,
    is_secret_name,
    is_secret_value,
)
from allaboard.formats.token_forms import redact_forms
from allaboard.late_pattern import compile_late

MIN_SECRET_LENGTH = 6
"""Characters below which a value is not searched for elsewhere: it would remove half of every word."""
_URL_USER = compile_late(
    r"://(?:[^\s/@:\"'<>]{0,256}+:(?!\d+/)[^\s@\"'<>]{1,256}+@|[^\s/@\"'<>]{1,256}+@)+", re.I
)
"""Matches up to the last @ of the address: a password may contain one, and several servers may be listed."""
_BARE_USER = compile_late(
    r"""(?<![^\s="'])[\w.-]{1,64}+:[^\s:/@"'<>()]++@(?!\d+(?![\w.:-]))(?=[\w.-]+(?::\d{2,5})?(?![\w.:@-]))""",
    re.M,
)
"""Matches NAME:PASSWORD@HOST without a scheme, with or without a port, as a rendezvous endpoint is given. A
number is no host: sbatch takes `--signal=B:USR1@120`."""
_COOKIE = compile_late(
    r"""(?P<head>\bcookie\\?["']?\s{0,8}:\s{0,8}\\?["']?)(?!\(redacted)[^\s"'\\][^\n"'\\]*+""", re.I
)
"""Matches a header with all of its cookies."""
_NETRC = compile_late(r"(?P<head>\blogin\s{1,8}\S{1,256}+\s{1,8}password\s{1,8})(?!\(redacted)\S+")
_BEARER = compile_late(
    r"(?P<head>\b(?:Bearer|Basic)\s{1,8})(?=\S{0,256}[\d_=]|\S{0,256}[a-z][A-Z])[A-Za-z0-9._~+/=-]{8,}"
)
_SIGNED_URL = compile_late(
    r"(?P<head>(?:[?&;]|\\u0026)(?:X-(?:Amz|Goog)-Signature|signature|sig)="
    r"|\bX-(?:Amz|Goog)-Signature[=:]\s{0,8}|\bSignature=(?=[0-9a-f]{32}))(?!\(redacted)[^\s&\"'<>\\,;]+",
    re.I,
)
"""Matches signed addresses of object stores: whoever has the signature can read there."""
_USER_PASSWORD = compile_late(
    r"""(?P<head>(?:(?<![a-z])user(?:name|pwd)?\\?["\']?\s{0,8}[=:]\s{0,8}|--(?:proxy-)?user(?:pwd)?["',\s=]{1,8})"""
    r"""\\?["\']?[^\s:;,="\'@/\\]{1,64}:)(?!\d{1,20}(?![\w.-])|password\b|\(redacted)[^\s:/"\',;&\\]+""",
    re.I,
)
"""Matches NAME:PASSWORD where a user is expected."""
_BLANK_FLAG = compile_late(r"-(?P<letter>[A-Za-z])(?P<value>.+)", re.S)
Count = Callable[[str], None]
NAMED, CLIENTS, ADDRESSES, HEADERS, FORMS, KEYS, KNOWN = (
    "values of names such as password, token or key",
    "passwords after a flag or a user",
    "passwords and signatures in addresses",
    "headers of requests",
    "tokens known by their form",
    "private keys",
    "values of this environment's secret variables",
)
"""Kinds of secrets, as a person reads them."""


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables that may hold a secret, longest first, so that they can be removed
    everywhere."""
    values = {
        v
        for n, v in environment.items()
        if is_secret_name(n) and len(v) >= MIN_SECRET_LENGTH and is_secret_value(n, v)
    }
    return sorted(values, key=len, reverse=True)


def redact_text(text: str, secrets: Iterable[str] = (), counts: Counter[str] | None = None) -> str:
    """Return the text without secrets; the values of ``secrets`` are removed wherever they stand.

    ``counts`` gets how many of each kind were removed.
    """
    found_counts: Counter[str] = Counter() if counts is None else counts
    for value in secrets:
        found_counts[KNOWN] += text.count(value)
        text = text.replace(value, REDACTED)
    lowered = text.lower()

    def substitute(kind: str, pattern: re.Pattern[str], *hints: str) -> None:
        nonlocal text
        if all(hint in lowered for hint in hints):
            text, count = pattern.subn(lambda m: m.groupdict().get("head", "") + REDACTED, text)
            found_counts[kind] += count

    def count_as(kind: str) -> Callable[[], None]:
        return lambda: found_counts.update((kind,))

    if "private key" in lowered:
        found_counts[KEYS] += len(private_keys.BEGIN.findall(text))
        text = private_keys.remove_private_keys(text, REDACTED)
    substitute(HEADERS, _COOKIE, "cookie")
    substitute(NAMED, _NETRC, "login", "password")
    if any(hint in lowered for hint in KEYWORD_HINTS):
        if "name" in lowered and "value" in lowered:
            text = redact_variables_of_pods(text, count_as(NAMED))
        text = redact_named_secrets(text, count_as(NAMED))
    if any(program in lowered for program in CLIENT_OF):
        text = redact_client_passwords(text, count_as(CLIENTS))
    if "@" in lowered and "://" in lowered:
        text, count = _URL_USER.subn(f"://{REDACTED}@", text)
        found_counts[ADDRESSES] += count
    substitute(ADDRESSES, _BARE_USER, "@", ":")
    substitute(ADDRESSES, _SIGNED_URL, "sig")
    substitute(CLIENTS, _USER_PASSWORD, "user", ":")
    substitute(HEADERS, _BEARER, "bearer")
    substitute(HEADERS, _BEARER, "basic")
    text, count = redact_forms(text, REDACTED)
    found_counts[FORMS] += count
    return text


def redact_command(
    arguments: Sequence[str], secrets: Iterable[str] = (), counts: Counter[str] | None = None
) -> list[str]:
    """Return the arguments of a program without secrets; ``--token X`` is two words there."""
    found_counts: Counter[str] = Counter() if counts is None else counts
    known_secrets = list(secrets)
    client = client_of_command(arguments)
    redacted_words: list[str] = []
    secret_flag = client_flag = ""
    for argument in arguments:
        flag, equals, _ = argument.partition("=")
        if secret_flag in SECRET_FLAGS or (equals and flag in SECRET_FLAGS):
            # A command after such an option may begin with a dash.
            found_counts[NAMED] += 1
            redacted_words.append(f"{flag}={REDACTED}" if not secret_flag else REDACTED)
            secret_flag = client_flag = ""
            continue
        joined = _BLANK_FLAG.match(argument) if client is not None else None
        password = ""
        if client is not None and client_flag:
            password = password_after_flag(client, argument, is_joined=False)
        elif client is not None and joined is not None and joined["letter"] in client.flags:
            password = password_after_flag(
                client, joined["value"].removeprefix("="), is_joined=True
            )
        if password:
            found_counts[CLIENTS] += 1
            redacted_words.append(argument[: len(argument) - len(password)] + REDACTED)
        elif (
            secret_flag and not argument.startswith("-") and is_secret_value(secret_flag, argument)
        ):
            found_counts[NAMED] += 1
            redacted_words.append(REDACTED)
        elif (user := _user_and_password(redacted_words, argument)) is not None:
            found_counts[CLIENTS] += 1
            redacted_words.append(user)
        else:
            redacted_words.append(redact_text(argument, known_secrets, found_counts))
        is_long_flag = argument.startswith("-") and "=" not in argument
        secret_flag = argument.lstrip("-") if is_long_flag and is_secret_name(argument) else ""
        secret_flag = argument if argument in SECRET_FLAGS else secret_flag
        is_client_flag = client is not None and len(argument) == 2 and argument[0] == "-"
        client_flag = (
            argument
            if is_client_flag and client is not None and argument[1] in client.flags
            else ""
        )
    return redacted_words


def _user_and_password(preceding: Sequence[str], argument: str) -> str | None:
    """Return ``NAME:(redacted)`` if the argument is NAME:PASSWORD after a flag such as --user; else None."""
    if not preceding or preceding[-1] not in ("--user", "--proxy-user", "--userpwd"):
        return None
    text = f"{preceding[-1]} {argument}"
    redacted = _USER_PASSWORD.sub(lambda m: m["head"] + REDACTED, text)
    return redacted[len(preceding[-1]) + 1 :] if redacted != text else None
