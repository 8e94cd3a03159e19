"""Logs of JSON lines and logfmt: the error is quoted in its words; healthy ones say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import diagnose

INFO = '{"level":"info","ts":"2026-01-02T03:04:04Z","msg":"Reconciling lm"}\n'


@pytest.mark.parametrize(
    ("record", "says", "fix"),
    [
        (
            '{"level":"error","ts":"2026-01-02T03:04:05Z","caller":"x/sync.go:7","msg":"Reconciler error",'
            '"namespace":"lab","name":"lm","error":"no matches for kind \\"PodGroup\\" in version '
            '\\"scheduling.volcano.sh/v1beta1\\"","stacktrace":"main\\n\\t/x.go:1"}',
            'Reconciler error: no matches for kind "PodGroup"',
            "kubectl api-resources | grep -i PodGroup",
        ),
        (
            'time="2026-01-02T03:04:05Z" level=error msg="cannot make pods" error="pods \\"lm-0\\" is '
            "forbidden: "
            'exceeded quota: gpus, requested: 8"',
            "cannot make pods: pods",
            "kubectl describe quota gpus",
        ),
        (
            'E0102 03:04:05.678901       1 sync.go:12] "Failed to sync" err="serviceaccounts \\"run\\" '
            'not found"',
            "Failed to sync: serviceaccounts",
            "kubectl get serviceaccounts -A | grep run",
        ),
    ],
)
def test_the_error_is_quoted_in_its_words(tmp_path: Path, record: str, says: str, fix: str) -> None:
    (finding,) = diagnose(tmp_path, f"{INFO}{record}\n")
    assert says in finding.summary and "stacktrace" not in finding.summary
    assert fix in finding.fix


def test_the_rank_of_a_record_is_named(tmp_path: Path) -> None:
    head = '{"level":"INFO","rank":%d,"message":"step 4 loss 1.2"}\n'
    error = '{"level":"ERROR","rank":1,"message":"RuntimeError: CUDA out of memory. ."}\n'
    findings = diagnose(tmp_path, head % 0 + head % 1 + error)
    assert findings and "rank 1" in str(findings[0].evidence) + findings[0].summary


@pytest.mark.parametrize(
    "text",
    [
        INFO * 3,
        INFO + '{"level":"error","msg":"could not push metrics, will retry in 5s"}\n' + INFO * 3,
        'level=warning msg="queue is slow"\nlevel=info msg="step 5 loss 1.0"\n',
        '{"level":"info","msg":"errors: 0, failed pods: 0"}\n',
        '{"level":"error","msg":"upload of a file failed"}\n{"level":"info","msg":"step 11 loss 1.0"}\n',
    ],
)
def test_a_job_that_goes_on_is_none(tmp_path: Path, text: str) -> None:
    assert diagnose(tmp_path, text) == []
