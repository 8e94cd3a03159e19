"""What NCCL's service (RAS) and its Inspector say; worded as NCCL's source words it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from allaboard.diagnosis.instruments import nccl_inspector, nccl_ras_json, nccl_ras_text
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Certainty, Exhibit, Finding, Severity
from allaboard.facts.instruments.nccl_state import NcclAnswer, NcclReport
from allaboard.rules.engine.catalogue import load_catalogue

SAMPLES = Path(__file__).parents[1] / "readers" / "samples" / "nccl_ras"
HEAD = "NCCL version 2.28.9 compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 13000\n\n"
TABLE = (
    "Job summary\n===========\n\nCommunicators... (0.00s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
    "    0         1         4         8        32        32   RUNNING  MISMATCH\n\n"
)
BEHIND = (
    "Errors\n======\n\nWarnings\n========\n\n#0-0 (27a079b828ff1a75) MISMATCH\n"
    "  Communicator ranks have different AllReduce operation counts\n"
    "  30 ranks have launched up to operation 6650\n"
    "  2 ranks have launched up to operation 6649\n"
    "  Rank 3 -- GPU 3 managed by process 483075 on node 172.16.64.210\n"
    "  Rank 7 -- GPU 7 (NVML 5) managed by process 483079 on node 172.16.64.210\n\n"
)
ALONE = (
    "Errors\n======\n\nWarnings\n========\n\n#0-0 (27a079b828ff1a75) MISMATCH\n"
    "  Communicator ranks have different AllGather operation counts\n"
    "  31 ranks have launched up to operation 12\n"
    "  Rank 9 has not launched any operations -- GPU 1 managed by process 99 on node fd00::7\n\n"
)
FAILED = (
    "Errors\n======\n\n#0-0 (27a079b828ff1a75) ERROR\n  Asynchronous errors on 3 ranks\n"
    "  2 ranks reported Remote process error\n"
    "  Rank 3 -- GPU 3 managed by process 483075 on node 172.16.64.210\n"
    "  Rank 7 -- GPU 7 managed by process 483079 on node 172.16.64.210\n"
    "  Rank 9 reported Unhandled CUDA error -- GPU 1 managed by process 99 on node 172.16.64.211\n\n"
)


def exhibit(text: str, name: str = "ras.txt") -> Exhibit:
    return Exhibit(name=name, data=text.encode())


def read(text: str) -> NcclReport:
    for reader in (nccl_ras_text, nccl_ras_json):
        testimony = reader.read_log(exhibit(text))
        if testimony is not None:
            (report,) = testimony.nccl
            return report
    raise AssertionError("no reader knows it")


def findings(folder: Path, *texts: str) -> dict[str, Finding]:
    for number, text in enumerate(texts):
        (folder / f"ras-{number}.txt").write_text(text)
    return {f.rule: f for f in diagnose_paths([folder], load_catalogue()).findings}


def test_a_stopped_process_is_named_by_its_rank() -> None:
    found = diagnose_paths([SAMPLES], load_catalogue()).findings
    (lost,) = [f for f in found if f.rule == "DUMP007"]
    assert lost.summary == (
        "rank 5 has not answered NCCL for a minute or longer, and is considered dead"
    )
    assert [(w.rank, w.pid, w.host) for w in lost.who] == [(5, 3487984, "172.16.64.213")]
    assert "-p 3487984" in lost.fix


def test_the_words_of_an_old_version_name_the_rank() -> None:
    text = (SAMPLES / "ras-1.txt").read_text()
    old = text.replace(
        "  Rank 5 -- GPU 1 managed by process 3487984 on node 172.16.64.213",
        "  The missing rank: 5",
    )
    report = read(old)
    ((rank,),) = [c.ranks for c in report.communicators]
    assert (rank.rank, rank.answer) == (5, NcclAnswer.SILENT)
    assert report.processes[0].pid == 3487984


def test_ranks_that_are_behind_are_likely_only_if_two_answers_agree(tmp_path: Path) -> None:
    once = findings(tmp_path, HEAD + TABLE + BEHIND)["DUMP008"]
    assert (once.severity, once.certainty) == (Severity.WARNING, Certainty.UNKNOWN)
    twice = findings(tmp_path, *[HEAD + TABLE + BEHIND] * 2)["DUMP008"]
    assert (twice.severity, twice.certainty) == (Severity.ERROR, Certainty.LIKELY)
    assert [w.rank for w in twice.who] == [3, 7]
    later = BEHIND.replace("6650", "6750").replace("6649", "6749")
    # Those behind have gone on, as in every job that trains.
    assert "DUMP008" not in findings(tmp_path, HEAD + TABLE + BEHIND, HEAD + TABLE + later)
    others_go_on = BEHIND.replace("6650", "6750")
    going_on = findings(tmp_path, HEAD + TABLE + BEHIND, HEAD + TABLE + others_go_on)["DUMP008"]
    assert going_on.certainty is Certainty.UNKNOWN


def test_several_answers_may_stand_in_one_file(tmp_path: Path) -> None:
    found = findings(tmp_path, (HEAD + TABLE + BEHIND) * 2)["DUMP008"]
    assert found.certainty is Certainty.LIKELY


def test_a_rank_that_launched_nothing_is_named(tmp_path: Path) -> None:
    found = findings(tmp_path, HEAD + TABLE + ALONE)["DUMP008"]
    assert (
        "rank 9 of the 32 ranks" in found.summary and "launched AllGather 0 times" in found.summary
    )


def test_the_rank_with_the_error_is_named_before_those_that_lost_it(tmp_path: Path) -> None:
    found = findings(tmp_path, HEAD + TABLE + FAILED)["DUMP009"]
    assert found.summary == "NCCL reports an error on rank 9: Unhandled CUDA error"


def test_a_status_that_differs_while_communicators_are_made_is_no_fault(tmp_path: Path) -> None:
    status = (
        "#0-0 (9e17999afaa87dbb) MISMATCH\n  Communicator ranks have different status\n"
        "  26 ranks have status NOCOMM\n  4 ranks have status RUNNING\n"
        "  Rank 0 -- GPU 0 managed by process 507285 on node 172.16.64.210\n"
        "  2 ranks have status FINALIZE\n"
        "  Rank 4 -- GPU 4 managed by process 507289 on node 172.16.64.210\n\n"
    )
    assert findings(tmp_path, HEAD + TABLE + status) == {}


def document(missing: bool = False, **rank_1: object) -> dict[str, object]:
    def rank(number: int, **changes: object) -> dict[str, object]:
        status = {"init_state": 0, "async_error": 0, "finalize_called": False}
        return {
            "rank": number,
            "host": "172.16.64.245",
            "pid": 1524344 + number,
            "cuda_dev": number,
            "nvml_dev": number,
            "status": status | dict(changes),
            "collective_counts": {"Broadcast": 0, "AllReduce": 40 if number else 41},
        }

    lost = rank(2) | {"status": {"unresponsive": True, "considered_dead": False}}
    return {
        "nccl_version": "2.29.1",
        "communicators_count": 1,
        "communicators": [
            {
                "hash": "0xae94423cfbb2ef4a",
                "size": 3 if missing else 2,
                "ranks": [rank(0), rank(1, **rank_1)],
                "missing_ranks": [lost] if missing else [],
            }
        ],
        "ras": {"collection_time_sec": 0.0, "timeouts_count": 0},
    }


@pytest.mark.parametrize("damage", ["none", "comma", "banner"])
def test_json_is_read_as_nccl_28_and_rccl_write_it(damage: str) -> None:
    text = json.dumps(document(missing=True), indent=2)
    if damage == "comma":  # as NCCL 2.28.9 writes missing ranks
        whole, sound = text, '"nvml_dev": 2,\n'
        assert sound in whole
        text = whole.replace(sound, '"nvml_dev": 2\n')
        with pytest.raises(ValueError, match="delimiter"):
            json.loads(text)
    if damage == "banner":
        text = "RCCL version 2.28.3\nHIP runtime version 7, driver version 7\n\n" + text
    (communicator,) = read(text).communicators
    assert (communicator.key, communicator.size) == ("ae94423cfbb2ef4a", 3)
    assert [(r.rank, r.answer) for r in communicator.ranks] == [(2, NcclAnswer.SILENT)]
    assert [(c.count, c.size) for c in communicator.counts["AllReduce"]] == [(41, 1), (40, 1)]


def test_of_two_ranks_the_one_behind_is_named(tmp_path: Path) -> None:
    found = findings(tmp_path, *[json.dumps(document())] * 2)["DUMP008"]
    assert [w.rank for w in found.who] == [1] and found.certainty is Certainty.LIKELY


def test_an_error_in_json_is_told_in_the_same_words(tmp_path: Path) -> None:
    found = findings(tmp_path, json.dumps(document(async_error=1)))["DUMP009"]
    assert found.summary == "NCCL reports an error on rank 1: Unhandled CUDA error"


def test_torn_json_becomes_a_note() -> None:
    testimony = nccl_ras_json.read_log(exhibit(json.dumps(document(), indent=1)[:300]))
    assert testimony is not None and testimony.notes and not testimony.nccl


MONITORED = {
    "[2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1 \n",
    '{\n  "timestamp": "2025-12-19 13:07:07",\n  "group": "LIFECYCLE",\n  "event": "PEER_DEAD",\n'
    '  "peer": {\n'
    '    "host": "172.16.64.245",\n    "pid": 1524345,\n    "cuda_devs": [1],\n    "nvml_devs": [1]\n  },\n'
    '  "details": ""\n}\n',
}


@pytest.mark.parametrize("text", sorted(MONITORED), ids=["text", "json"])
def test_a_death_that_is_watched_is_read(text: str, tmp_path: Path) -> None:
    found = findings(tmp_path, text)["DUMP007"]
    assert found.summary.startswith("pid 1524345 has not answered NCCL")


def recorded(rank: int, number: int, duration_us: int, op: str = "AllReduce") -> dict[str, object]:
    return {
        "header": {"id": "0x7f8c496ae9f661", "rank": rank, "n_ranks": 2, "nnodes": 1},
        "metadata": {
            "inspector_output_format_version": "v4.0",
            "hostname": "node7",
            "pid": 900 + rank,
        },
        "coll_perf": {"coll": op, "coll_sn": number, "coll_exec_time_us": duration_us},
    }


@pytest.mark.parametrize("indent", [None, 2])
def test_the_rank_that_comes_last_is_the_one_that_waits_least(
    indent: int | None, tmp_path: Path
) -> None:
    for rank in (0, 1):
        lines = [
            json.dumps(recorded(rank, n, 2000 if rank else 30000), indent=indent) for n in range(25)
        ]
        (tmp_path / f"node7-pid{900 + rank}.log").write_text("\n".join(lines) + "\n")
    (found,) = diagnose_paths([tmp_path], load_catalogue()).findings
    assert found.rule == "DUMP010" and [w.rank for w in found.who] == [1]
    (tmp_path / "node7-pid900.log").unlink()
    assert diagnose_paths([tmp_path], load_catalogue()).findings == ()


def test_a_record_that_is_cut_short_costs_itself_only() -> None:
    lines = [json.dumps(recorded(0, n, 5)) for n in range(3)]
    testimony = nccl_inspector.read_log(exhibit(f"{lines[0]}\n{lines[1][:80]}\n{lines[2]}\n"))
    assert testimony is not None
    assert [c.number for c in testimony.timed[0].collectives] == [0, 2]
