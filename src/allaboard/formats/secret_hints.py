"""Tells cheaply which texts may hold a secret, so that what finds them is loaded and run for those alone."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from allaboard.late_pattern import compile_late

Value = TypeVar("Value")
_NAMES = (
    rb"(?:token|secret|pass|pwd?|cred|webhook|auth|cookie|jwt|string|key)[\w.-]{0,64}"
    rb"(?:\\*[\"']?\s{0,16}[=:,]|%3|\\?[\s\"'])"
)
_FORMS = (
    rb"\b(?:gh[pousr]_|github_pat_|hf_|sk-|[srp]k_|xox|xapp-|AKIA|ASIA|AIza|glpat-|ya29|dop_v1|npm_|pypi-"
    rb"|dckr_|hv[sb]\.|r8_|nvapi-|wandb|eyJ|hooks\.slack|discord)"
)
_CLIENTS = rb"(?<=[\s\"'\x1f])-(?:[pauUPw])\b|-(?:p|u)[^\s\"'-]{4}|user"
_LOOKS_SECRET = compile_late(
    rb"|".join(
        [
            _NAMES,
            _FORMS,
            _CLIENTS,
            rb"@|--(?:notify|heartbeat-url|on-finding|otlp)|bearer|basic|PRIVATE KEY|signature|sig=",
            rb"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
        ]
    ),
    re.I,
)


def may_hold_secret(data: bytes) -> bool:
    """Return False if no text in this JSON, or in this line, can hold a secret that is recognized."""
    return _LOOKS_SECRET.search(data) is not None


def redact(record: Value) -> Value:
    """Return a record or a text without secrets, see `redacted_records.redact_record`."""
    try:
        data = record.encode() if isinstance(record, str) else msgspec.json.encode(record)
    except UnicodeEncodeError:  # bytes of an argument that are no UTF-8
        data = b""
    if data and not may_hold_secret(data):
        return record
    from allaboard.formats.redacted_records import redact_record

    return redact_record(record)
