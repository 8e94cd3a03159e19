"""Records of structured loggers as the line that a person would read: time, source, level, message. Pure.

The forms are JSON objects (zap, logrus, slog, structlog, python-json-logger, pino, Ray's events, what Fluentd
and Vector export), logfmt (logrus, Grafana's agents), zap's console form (a line with an object behind it)
and klog's structured form since Kubernetes 1.19.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

MAX_FIELDS = 4
"""Fields of a record that are shown behind its message."""
MAX_FIELD_CHARS = 160
"""Characters of such a field."""
_MESSAGE_KEYS = ("msg", "message", "event", "log", "textPayload", "body", "text")
_LEVEL_KEYS = ("level", "lvl", "severity", "levelname", "log_level", "loglevel")
_TIME_KEYS = ("ts", "time", "timestamp", "@timestamp", "asctime", "t")
_SOURCE_KEYS = ("caller", "source", "logger", "filename", "source_type", "name", "module")
_ERROR_KEYS = ("error", "err", "reason", "cause", "exception", "exc")
_HOST_KEYS = ("host_name", "hostname", "host", "pod_name", "pod", "node_name")
_RANK_KEYS = ("rank", "global_rank", "process_index")
_OBJECT_KEYS = (
    *("node", "job", "pod", "namespace", "worker", "task", "replica", "replica-type", "object", "image"),
    *("container", "kind", "controller", "address", "addr", "server", "path", "file", "exit_code", "rc"),
)  # fmt: skip
"""Names of fields that tell what a record is about."""
_LEVELS = {
    "trace": "TRACE", "debug": "DEBUG", "info": "INFO", "notice": "INFO", "warn": "WARNING",
    "warning": "WARNING", "error": "ERROR", "err": "ERROR", "eror": "ERROR", "fatal": "FATAL",
    "critical": "CRITICAL", "crit": "CRITICAL", "dpanic": "FATAL", "panic": "FATAL", "emerg": "FATAL",
    "alert": "CRITICAL", "10": "TRACE", "20": "DEBUG", "30": "INFO", "40": "WARNING", "50": "ERROR",
    "60": "FATAL",
}  # fmt: skip
"""Levels in the spelling of the logs that have one as a word; the numbers are those of pino and bunyan."""
_LOGFMT_HEAD = re.compile(
    r"^(?=.{0,400}?(?:^| )(?:level|lvl|severity)=)(?=.{0,4000}?(?:^| )(?:msg|message|err|error)=)"
    r"[A-Za-z_@][\w.@-]*="
)
_PAIR = re.compile(r'(?P<key>[A-Za-z_@][\w.@/-]*)=(?P<value>"(?:[^"\\]|\\.)*"|[^\s"]*)')
_CONSOLE = re.compile(
    r"^(?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)|\d\.\d{3,20}e\+\d\d)\t+ *(?P<level>[A-Z]{4,6})\t+"
    r"(?P<text>.*?)\t(?P<fields>\{.*\})\s*$"
)
_KLOG = re.compile(
    r'^(?P<head>[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\] )"(?P<text>(?:[^"\\]|\\.)*)"'
    r"(?P<fields>(?: +[\w.@/-]+=.*)?)$"
)
_COLLECTED = re.compile(
    r"(?P<prefix>(?:[A-Za-z0-9][\w.:+/-]{0,80}[ \t]){1,3})(?P<record>(?:\{\"|\d{4}-\d\d-\d\dT\S+\t).*)"
)
"""What a collector puts before a record: a time, a pod, a container."""
_LABELLED = re.compile(r"\[(?:rank|default)?\d{1,7}\]|\[?[IWEF]\d{3,4} ")
"""A message that has its own rank or severity."""
_SIGNS = ("level=", "lvl=", "severity=", "\t{", '] "')
"""One of these, or a line that begins with an object, is in every text that holds such records."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,252}")


def may_hold_records(text: str) -> bool:
    """Return False if no line of the text is a structured record: most texts need no further look."""
    return (
        text.startswith("{")
        or "\n{" in text
        or ' {"' in text
        or any(sign in text for sign in _SIGNS)
    )


def readable_record(line: str) -> str:
    """Return the line for a structured record, also behind a collector's prefix; "" if the line is none."""
    if record := _readable(line):
        return record
    behind = _COLLECTED.match(line) if '{"' in line else None
    record = _readable(behind["record"]) if behind is not None else ""
    return f"{behind['prefix']}{record}" if behind is not None and record else ""


def _readable(line: str) -> str:
    if line.startswith("{"):
        return _of_fields(_json_object(line)) if '":' in line else ""
    if "\t{" in line and (console := _CONSOLE.match(line)) is not None:
        fields = _json_object(console["fields"])
        source, _, text = console["text"].rpartition("\t")
        return _rendered(console["time"], console["level"], source, text, fields)
    if '] "' in line and (klog := _KLOG.match(line)) is not None:
        return klog["head"] + _with_details(_unquoted(klog["text"]), _pairs(klog["fields"]))
    if "=" in line[:60] and _LOGFMT_HEAD.match(line):
        return _of_fields(_pairs(line))
    return ""


def _json_object(text: str) -> dict[str, object]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _pairs(text: str) -> dict[str, object]:
    return {m["key"]: _unquoted(m["value"]) for m in _PAIR.finditer(text[:8000])}


def _unquoted(text: str) -> str:
    """Return what Go's ``%q`` has quoted."""
    if not text.startswith('"'):
        text = f'"{text}"' if "\\" in text else text
    try:
        return str(msgspec.json.decode(text)) if text.startswith('"') else text
    except msgspec.DecodeError:
        return text.strip('"')


def _of_fields(fields: dict[str, object]) -> str:
    """Return the line of a record's fields; "" if they are no record of a logger."""
    message, level = _first(fields, _MESSAGE_KEYS), _first(fields, _LEVEL_KEYS)
    inner = fields.get("kubernetes")
    where = inner if isinstance(inner, dict) else {}
    if not message and level:
        message = _first(fields, _ERROR_KEYS)
    if not message or not (level.lower() in _LEVELS or where):
        return ""
    source = next((s for k in _SOURCE_KEYS if (s := _text(fields.get(k))) and " " not in s), "")
    return _rendered(_first(fields, _TIME_KEYS), level, source, message, {**where, **fields})


def _rendered(
    time: str, level: str, source: str, message: str, fields: Mapping[str, object]
) -> str:
    head, *later_lines = message.rstrip("\n").split("\n")
    level_name = _LEVELS.get(level.lower(), "")
    # What another program wrote has a form of its own.
    heading = (
        [time[:40], source[:60], level_name] if level_name and not _LABELLED.match(head) else []
    )
    line = " ".join([*filter(None, heading), _with_details(head, fields)])
    identity = _identity(fields)
    return "\n".join(identity + part for part in (line, *later_lines))


def _with_details(message: str, fields: Mapping[str, object]) -> str:
    """Return the message with the error that goes with it, and with what it is about."""
    error = next((e for k in _ERROR_KEYS if (e := _text(fields.get(k))) and e not in message), "")
    whole = f"{message.rstrip(' .:')}: {error}" if error and message else message or error
    shown = [f"{key} {value}" for key, value in _objects(fields) if value and value not in whole][
        :MAX_FIELDS
    ]
    return f"{whole} ({', '.join(shown)})" if shown else whole


def _objects(fields: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the names of what the record is about, with those of its namespace before them."""
    for key, value in fields.items():
        if isinstance(value, dict) and _text(value.get("name")):
            names = (_text(value.get("namespace")), _text(value.get("name")))
            yield key, "/".join(filter(None, names))
    if _text(fields.get("namespace")) and (name := _text(fields.get("name"))):
        yield "object", f"{_text(fields.get('namespace'))}/{name}"
        return
    for key in _OBJECT_KEYS:
        if value := _text(fields.get(key)):
            yield key, value[:MAX_FIELD_CHARS]


def _identity(fields: Mapping[str, object]) -> str:
    """Return what says who wrote the record, in the form that `log_prefixes` reads; "" if nothing does."""
    rank, pid = _first(fields, _RANK_KEYS), _text(fields.get("pid"))
    host = next((h for k in _HOST_KEYS if _NAME.fullmatch(h := _text(fields.get(k)))), "")
    names = (
        f" rank={rank}" if rank.isdecimal() and len(rank) < 8 else "",
        f" host={host}" if host else "",
        f" pid={pid}" if host and pid.isdecimal() and len(pid) < 10 else "",
    )
    return f"[record{''.join(names)}] " if any(names) else ""


def _first(fields: Mapping[str, object], keys: tuple[str, ...]) -> str:
    return next((text for key in keys if (text := _text(fields.get(key)))), "")


def _text(value: object) -> str:
    """Return a text or a number as text; "" for anything else."""
    return str(value).strip() if isinstance(value, str | int | float) else ""
