"""A merged spec as lines of field, value and origin; and as JSON."""

from __future__ import annotations

from allaboard.facts import ConfigFacts, Value
from allaboard.report.json_text import indented_json
from allaboard.report.plain_text import clean

MAX_SHOWN_TASKS = 64
"""Tasks that are listed one by one."""


def as_table(config: ConfigFacts) -> str:
    """Return the values of a subject, each with its origin; conflicts below."""
    spec = config.spec
    rows: list[tuple[str, str, str]] = []
    if spec.job is not None or spec.index is not None:
        task = [v for v in (spec.job, spec.index) if v is not None]
        rows.append(("task", " ".join(v.text for v in task), str(task[0].origin)))
    rows += [(name.replace("_", " "), v.text, str(v.origin)) for name, v in spec.values.items()]
    listed = list(spec.tasks())
    rows += [(f"{job} {i}", v.text, str(v.origin)) for job, i, v in listed[:MAX_SHOWN_TASKS]]
    if len(listed) > MAX_SHOWN_TASKS:
        rows.append(("…", f"{len(listed) - MAX_SHOWN_TASKS} more tasks", ""))
    if not listed:
        rows += [
            (
                f"host {i}",
                m.name.text + (f" slots={m.slots}" if m.slots else ""),
                str(m.name.origin),
            )
            for i, m in enumerate(spec.machines[:MAX_SHOWN_TASKS])
        ]
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    head = f"{config.subject} ({', '.join(spec.sources)})\n"
    lines = [f"  {n:<{widths[0]}}  {t:<{min(widths[1], 48)}}  {o}".rstrip() for n, t, o in rows]
    lines += [
        f"  conflict in {c.field}: {_value_with_origin(c.used)} is in force, "
        f"{_value_with_origin(c.overruled)} differs"
        for c in spec.conflicts
    ]
    return clean(head[:-1]) + "\n" + "".join(clean(line) + "\n" for line in lines)


def as_json(config: ConfigFacts) -> str:
    """Return the merged spec with every value's origin."""
    document = {"subject": config.subject, "spec": config.spec}
    return indented_json(document)


def _value_with_origin(value: Value) -> str:
    return f"{value.text} [{value.origin}]"
