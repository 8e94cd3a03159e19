"""`PYTHONPATH=tests python -m multihost_drills [NAME]`: list the drills between hosts, or stage one.

Needs root.
"""

from __future__ import annotations

import sys

from allaboard.report.finding_text import finding_lines
from multihost_drills import run_host_drill


def main(arguments: list[str]) -> int:
    """Return 0 if the drill's fault was named, 1 if not, 2 if it cannot be staged here."""
    drills = run_host_drill.all_host_drills()
    if not arguments:
        for name, drill in drills.items():
            print(
                f"{name:<24} {drill.expects or 'nothing':<8} {drill.framework}, {drill.hosts} hosts"
            )
        return 0
    name = arguments[0]
    if name not in drills:
        print(
            f"multihost_drills: no drill {name!r}; without a name, all drills are listed",
            file=sys.stderr,
        )
        return 2
    if lacking := run_host_drill.lacks(drills[name]):
        print(f"multihost_drills: {name} cannot be staged here: {lacking}", file=sys.stderr)
        return 2
    result = run_host_drill.rehearse(name)
    print(result.output)
    for finding in result.findings:
        print("\n".join(finding_lines(finding)))
    print(f"{name}: {'passed' if result.passed else 'FAILED'} ({result.rule})")
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
