"""What fails below the user's code is told as that, with the line that met it; a launcher's own "
"line is nobody's."""

from __future__ import annotations

from pathlib import Path

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.rules.engine.catalogue import load_catalogue

HEAD = (
    '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/home/u/train.py", line 40, in main\n'
    "[rank0]:     loss.backward()\n"
)


def told(tmp_path: Path, text: str) -> dict[str, str]:
    log = tmp_path / "job.log"
    log.write_text(text)
    found = diagnose_paths([log], load_catalogue()).findings
    return {f.rule: " ".join([f.fix, *map(str, f.evidence)]) for f in found}


def test_a_failure_of_nccl_is_not_to_be_mended_at_the_line_that_met_it(tmp_path: Path) -> None:
    said = "NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
    found = told(tmp_path, f"{HEAD}[rank0]: RuntimeError: {said}\n")
    assert list(found) == ["LOG010"]
    assert "train.py:40" in found["LOG010"] and "fix " not in found["LOG010"]


def test_another_exception_of_the_same_rank_keeps_its_finding(tmp_path: Path) -> None:
    assert list(told(tmp_path, f"{HEAD}[rank0]: ValueError: bad batch\n")) == ["EXIT002"]


def test_torchruns_own_line_is_not_to_be_mended(tmp_path: Path) -> None:
    raised = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"
    text = (
        'Traceback (most recent call last):\n  File "/usr/local/bin/torchrun", line 8, in <module>\n'
        f"    sys.exit(main())\n{raised}\n"
    )
    assert list(told(tmp_path, text)) == ["JOIN001"]


def test_an_error_of_the_setup_is_told_with_what_helps(tmp_path: Path) -> None:
    said = "ValueError: Default process group has not been initialized, please make sure to call it"
    found = told(tmp_path, f"{HEAD}[rank0]: {said}\n")
    assert list(found) == ["EXIT002"]
    assert (
        "call init_process_group before it" in found["EXIT002"] and "fix " not in found["EXIT002"]
    )


def test_a_gpu_that_is_full_is_told_once(tmp_path: Path) -> None:
    said = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 39 GiB"
    )
    found = told(tmp_path, f"{HEAD}[rank0]: {said}\n")
    assert list(found) == ["RES001"] and "smaller batches on each rank" in found["RES001"]


def test_a_message_of_several_lines_is_read_whole(tmp_path: Path) -> None:
    plain = HEAD.replace("[rank0]: ", "")
    ddp = (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a "
        "new one.\n"
        "If you already have done the above, then the distributed data parallel module was not able to.\n"
        "Parameter indices which did not receive grad for rank 1: 2 3\n"
        " In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to INFO.\n"
    )
    found = told(tmp_path, plain + ddp)
    assert list(found) == ["EXIT002"] and "see why parameters 2 3 had no part" in found["EXIT002"]
    keys = "RuntimeError: Error(s) in loading state_dict for Net:\n"
    keys += '\tMissing key(s) in state_dict: "module.w".\n'
    for head, text in ((plain, keys), (HEAD, keys.replace("\n\t", "\n[rank0]: \t"))):
        found = told(tmp_path, f"{head}{'[rank0]: ' if head is HEAD else ''}{text}")
        assert "model.module" in found["EXIT002"], head
