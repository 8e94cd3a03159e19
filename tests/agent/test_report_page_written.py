"""The page of a run is there as a whole, or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIMITED = """
import resource, signal, sys
from pathlib import Path
from allaboard.agent.report_page import write_report_page
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
print(write_report_page(Path(sys.argv[1]), ()))
"""


def test_a_page_that_does_not_fit_is_not_left_in_part(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("report.html was not written: ")
    assert [p.name for p in tmp_path.iterdir()] == ["journal.jsonl"]
