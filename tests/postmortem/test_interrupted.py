"""A log of ranks that were ended by SIGINT: nobody has to mend a line for it."""

from __future__ import annotations

from pathlib import Path

from allaboard.catalogue import catalogue
from allaboard.postmortem.paths import of_paths

LOG = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/u/train.py", line 5, in <module>
[rank1]:     time.sleep(60)
[rank1]: KeyboardInterrupt
"""


def test_an_interrupted_rank_has_no_line_to_mend(tmp_path: Path) -> None:
    log = tmp_path / "torchrun.log"
    log.write_text(LOG)
    (found,) = of_paths([log], catalogue()).findings
    assert found.rule == "EXIT008"
    assert "interrupted from outside" in found.summary
    assert found.fix is not None and "mend" not in found.fix
