"""Records of structured loggers are read as a person would write them; other texts stay as they are."""

from __future__ import annotations

import pytest

from allaboard.formats.dumps.json_lines import expand_json_lines
from allaboard.formats.dumps.structured_records import readable_record

CONSOLE = (
    '2026-01-02T03:04:05.678Z\tERROR\tcontrollers.Job\tcould not make pods\t{"job": "lab/lm", '
    '"error": "no room"}'
)
KLOG = (
    'E0102 03:04:05.678901       1 sync.go:12] "Failed to sync" err="dial: refused" pod="lab/w-0"'
)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            '{"level":"error","ts":"2026-01-02T03:04:05Z","caller":"job/sync.go:7","msg":"sync failed",'
            '"error":"no such queue","stacktrace":"main.main\\n\\t/x.go:1"}',
            "2026-01-02T03:04:05Z job/sync.go:7 ERROR sync failed: no such queue",
        ),
        (
            'time="2026-01-02T03:04:05Z" level=fatal msg="cannot start" error="a \\"b\\" c" job=lm',
            '2026-01-02T03:04:05Z FATAL cannot start: a "b" c (job lm)',
        ),
        (
            CONSOLE,
            "2026-01-02T03:04:05.678Z controllers.Job ERROR could not make pods: no room (job lab/lm)",
        ),
        (
            KLOG,
            "E0102 03:04:05.678901       1 sync.go:12] Failed to sync: dial: refused (pod lab/w-0)",
        ),
        (
            '{"level":50,"time":1,"msg":"bad","name":"w-0","namespace":"lab"}',
            "1 w-0 ERROR bad (object lab/w-0)",
        ),
        ('{"severity":"INFO","rank":3,"message":"step 4"}', "[record rank=3] INFO step 4"),
        (
            '{"severity":"FATAL","host_name":"n-7","pid":"89","message":"left"}',
            "[record host=n-7 pid=89] FATAL left",
        ),
        (
            '{"log":"[rank0]: ready\\n","stream":"stderr","kubernetes":{"pod_name":"w-0"}}',
            "[record host=w-0] [rank0]: ready",
        ),
    ],
)
def test_a_record_is_read_as_its_message(line: str, text: str) -> None:
    assert readable_record(line) == text


@pytest.mark.parametrize(
    "line",
    [
        '{"step": 410, "loss": 1.21}',
        '{"message": "no level"}',
        '{"level": 3, "message": "a number of another kind"}',
        '{"level":"error","msg":"cut of',
        "lr=0.1 level=2 loss=4.1",
        "export PS1=x; level=error",
        "2026-01-02T03:04:05Z\tERROR\tno object behind it",
        'E0102 03:04:05.678901       1 sync.go:12] plain "quoted" words',
        "",
    ],
)
def test_another_line_is_none(line: str) -> None:
    assert readable_record(line) == ""


def test_all_lines_of_a_message_are_of_its_writer() -> None:
    record = '{"level":"error","rank":1,"message":"one\\ntwo"}'
    text, numbers = expand_json_lines(f"start\n{record}\n")
    assert text.split("\n") == ["start", "[record rank=1] ERROR one", "[record rank=1] two", ""]
    assert numbers == [1, 2, 2, 3]


def test_a_text_without_records_stays_as_it_is() -> None:
    text = '{"step": 1}\nepoch 1: loss 2.0\n'
    assert expand_json_lines(text) == (text, [1, 2, 3])
