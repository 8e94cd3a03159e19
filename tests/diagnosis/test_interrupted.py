"""A log of ranks that were ended by SIGINT: nobody has to mend a line for it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from allaboard.agent.final_report import assemble_report
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Outcome
from allaboard.facts.samples import sample_job, sample_member
from allaboard.rules.engine.catalogue import load_catalogue

LOG = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/u/train.py", line 5, in <module>
[rank1]:     time.sleep(60)
[rank1]: KeyboardInterrupt
"""


def test_an_interrupted_rank_has_no_line_to_mend(tmp_path: Path) -> None:
    log = tmp_path / "torchrun.log"
    log.write_text(LOG)
    (found,) = diagnose_paths([log], load_catalogue()).findings
    assert found.rule == "EXIT008"
    assert "interrupted from outside" in found.summary
    assert found.fix is not None and "fix " not in found.fix


def test_who_interrupts_a_run_is_accused_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "worker-1.log").write_text(LOG)
    report = assemble_report(
        job="j", command=("train.py",), outcome=Outcome.INTERRUPTED, reason="interrupted", code=130,
        started="", seconds=9, run_dir=str(tmp_path),
        view=sample_job(sample_member(0), sample_member(1)), findings=(), notes=(),
    )  # fmt: skip
    (tmp_path / "report.json").write_bytes(msgspec.json.encode(report))
    found = diagnose_paths([tmp_path], load_catalogue())
    assert not found.findings and "a user interrupted the run" in found.conclusion
