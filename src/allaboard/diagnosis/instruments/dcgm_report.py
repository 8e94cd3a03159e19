"""`dcgmi health --check` and `dcgmi diag`, as text and with ``--json``.

Written from the source and the tests of DCGM 3 and 4 (dcgmi/Health.cpp, dcgmi/Diag.cpp, nvvs/include/
NvvsJsonStrings.h), not recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.hardware import DeviceCheck, Hardware, Trouble, Weight

MAX_TEXT = 400
"""Characters of DCGM's explanation that are kept."""
_HEALTH, _DIAG = "dcgmi health", "dcgmi diag"
_HEALTH_HEAD, _DIAG_HEAD = "Health Monitor Report", "| Diagnostic "
_ROW = re.compile(r"^\| (?P<label_column>.*?) *\| (?P<right>.*?) *\|$")
_BAD = {
    "warning": Weight.WARNING,
    "warn": Weight.WARNING,
    "failure": Weight.FAILURE,
    "fail": Weight.FAILURE,
}
_ENTITY_RESULT = re.compile(r"^(?P<entity>[A-Za-z]+ ?\d+): (?P<result>\w+)$")
_OLD_RESULT = re.compile(r"^(?P<result>Pass|Fail|Warn)\w* - (?:All|GPUs?:? (?P<gpus>[\d, ]+))$")
"""How DCGM before version 4 names the GPUs of a result: ``Fail - GPU: 2``."""
_ENTITY_WARNING = re.compile(r"^Warning(?:: (?P<entity>[A-Za-z]+ ?\d+))?$")


def read_log(exhibit: Exhibit) -> Testimony | None:
    head = exhibit.data[: 1 << 20]
    is_json = b'"DCGM' in head or (b'"header"' in head and _HEALTH_HEAD.encode() in head)
    if is_json:
        checks = tuple(_read_json(exhibit))
    elif _HEALTH_HEAD.encode() in head:
        checks = tuple(_read_health_table(exhibit))
    elif _DIAG_HEAD.encode() in head and b"DCGM" in head:
        checks = tuple(_read_diag_table(exhibit))
    else:
        return None
    # A report without a trouble is a witness too: it is of a known kind.
    return Testimony(hardware=Hardware(checks=checks))


def _entity(name: str) -> str:
    """Return a device as ``GPU 3``."""
    match = re.fullmatch(r"([A-Za-z_ ]+?) ?(\d+)", name.strip())
    return f"{match[1]} {match[2]}" if match is not None else name.strip()


def _check(
    exhibit: Exhibit, tool: str, entity: str, check: str, weight: Weight, text: str, line: int = 0
) -> DeviceCheck:
    return DeviceCheck(
        tool=tool,
        entity=_entity(entity),
        check=check,
        trouble=Trouble(text=" ".join(text.replace("***", " ").split())[:MAX_TEXT], weight=weight),
        host=exhibit.host,
        place=exhibit.place_of_line(line),
    )


def _read_health_table(exhibit: Exhibit) -> Iterator[DeviceCheck]:
    """Yield the systems of a device that are not healthy, of the tree that ``dcgmi health`` draws.

    Depth is told by the arrow: the kind of device, the device, "Errors", the system; rows without a label
    go on with the text above them.
    """
    kind = device = system = ""
    weight, begun_at = Weight.WARNING, 0
    text: list[str] = []
    for number, line in enumerate(exhibit.text.splitlines()):
        row = _ROW.match(line.strip())
        if row is None:
            continue
        label_column, right = row["label_column"].rstrip(), row["right"].strip()
        label = label_column.strip().removeprefix("->").strip()
        if not label:
            text.append(right)
            continue
        if system and text:
            yield _check(
                exhibit, _HEALTH, f"{kind} {device}", system, weight, " ".join(text), begun_at
            )
        system, text = "", []
        depth = (
            (len(label_column) - len(label_column.lstrip()) + 3) // 3 if "->" in label_column else 0
        )
        if depth == 0:
            kind = label
        elif depth == 1:
            device = label
        elif label != "Errors" and right.lower() in _BAD:
            system, weight, begun_at = label, _BAD[right.lower()], number
    if system and text:
        yield _check(exhibit, _HEALTH, f"{kind} {device}", system, weight, " ".join(text), begun_at)


def _read_diag_table(exhibit: Exhibit) -> Iterator[DeviceCheck]:
    """Yield the failed tests of the table that ``dcgmi diag`` draws, with the warnings below each."""
    test = ""
    failures: list[tuple[str, str, Weight, int]] = []
    warnings: dict[tuple[str, str], str] = {}
    warned: tuple[str, str] | None = None
    for number, line in enumerate(exhibit.text.splitlines()):
        row = _ROW.match(line.strip())
        if row is None or row["right"].startswith("---"):
            continue
        label_column, right = row["label_column"].strip(), row["right"].strip()
        warning = _ENTITY_WARNING.match(label_column)
        if warning is not None:
            warned = (test, _entity(warning["entity"] or ""))
            warnings[warned] = f"{warnings.get(warned, '')} {right}"
            continue
        entity = _ENTITY_RESULT.match(right)
        if label_column:
            test, warned = label_column, None
            old = _OLD_RESULT.match(right)
            result = old["result"] if old is not None else right
            if result.lower() in _BAD:
                devices = re.findall(r"\d+", old["gpus"] or "") if old is not None else []
                for device in devices or [""]:
                    name = f"GPU {device}" if device else ""
                    failures.append((test, name, _BAD[result.lower()], number))
        elif entity is not None:
            warned = None
            if entity["result"].lower() in _BAD:
                failures = [f for f in failures if f[0] != test or f[1]]  # the device says more
                name = _entity(entity["entity"])
                failures.append((test, name, _BAD[entity["result"].lower()], number))
        elif warned is not None:
            warnings[warned] += f" {right}"
    for test, name, weight, number in failures:
        text = warnings.get((test, name)) or warnings.get((test, "")) or f"the test {test} failed"
        yield _check(exhibit, _DIAG, name, test, weight, text, number)


def _read_json(exhibit: Exhibit) -> Iterator[DeviceCheck]:
    begin = exhibit.data.find(b"{")
    try:
        document = json.loads(exhibit.data[begin:])
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    if isinstance(document.get("body"), dict):
        yield from _health_json(exhibit, document["body"])
    for key in ("DCGM Diagnostic", "DCGM GPU Diagnostic"):
        report = document.get(key)
        if isinstance(report, dict):
            yield from _diag_json(exhibit, report)


def _children(node: object) -> Iterator[tuple[str, dict[str, Any]]]:
    children = node.get("children") if isinstance(node, dict) else None
    for name, child in (children or {}).items() if isinstance(children, dict) else ():
        if isinstance(child, dict):
            yield str(name), child


def _health_json(exhibit: Exhibit, body: dict[str, Any]) -> Iterator[DeviceCheck]:
    for kind, group in body.items():
        for device, node in _children(group):
            for system, error in (e for _, errors in _children(node) for e in _children(errors)):
                weight = _BAD.get(str(error.get("value", "")).lower())
                if weight is not None:
                    text = " ".join(map(str, error.get("overflow") or ()))
                    yield _check(exhibit, _HEALTH, f"{kind} {device}", system, weight, text)


def _diag_json(exhibit: Exhibit, report: dict[str, Any]) -> Iterator[DeviceCheck]:
    for category in _dicts(report.get("test_categories")):
        for test in _dicts(category.get("tests")):
            name = str(test.get("name", "a test"))
            for result in _dicts(test.get("results")):
                weight = _BAD.get(str(result.get("status", "")).lower())
                if weight is None:
                    continue
                warnings = result.get("warnings") or ""
                texts = [str(w.get("warning", w) if isinstance(w, dict) else w)
                         for w in (warnings if isinstance(warnings, list) else [warnings])]  # fmt: skip
                device = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids", "")))
                kind = str(result.get("entity_group", "GPU"))
                text = " ".join(texts).strip() or f"the test {name} failed"
                yield _check(exhibit, _DIAG, f"{kind} {device}".strip(), name, weight, text)


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    return (v for v in value if isinstance(v, dict)) if isinstance(value, list) else iter(())


READER = LogReader(read=read_log)
