"""What the rules of ends say of steps and of debuggers."""

from __future__ import annotations

from allaboard.facts import Claim, Frame, Phase
from allaboard.facts.samples import (
    ended_member,
    member_with_calls,
    sample_job,
    sample_member,
    sample_signature,
    stalled_job,
    waiting_member,
)
from allaboard.rules.engine.catalogue import load_catalogue


def _claim(code: str, view: object) -> Claim:
    rule = next(e.rule for e in load_catalogue().entries if e.code == code)
    (claim,) = rule.check(view)
    return claim


def test_numbers_of_steps_are_told_where_they_differ() -> None:
    gone = ended_member(1, ended_at=90.5, code=0, member={"step": 41})
    equal = _claim("EXIT004", stalled_job(waiting_member(0, step=41), gone))
    assert not any("steps completed" in e.observed for e in equal.evidence)
    fewer = _claim("EXIT004", stalled_job(waiting_member(0, step=42), gone))
    assert "steps completed: rank 1: 41, rank 0: 42" in [e.observed for e in fewer.evidence]


def test_the_line_that_only_some_ranks_come_to_is_told() -> None:
    gone = ended_member(1, ended_at=90.5, code=0, member={"step": 41})
    alone = _claim("EXIT004", stalled_job(waiting_member(0, step=41), gone))
    (why,) = [e.observed for e in alone.evidence if "waits in a collective" in e.observed]
    assert why.endswith("lost its peer (at train.py:41 in train)")
    assert alone.fix.endswith("; if only some ranks come to /home/u/train.py:41, let all or none")
    uneven = _claim("EXIT004", stalled_job(waiting_member(0, step=42), gone))
    assert "let all or none" not in uneven.fix


def test_who_is_through_after_as_many_steps_may_have_left_out_a_line() -> None:
    alone = _claim(
        "HANG005",
        stalled_job(
            waiting_member(0, step=40),
            sample_member(1, step=40, phase=Phase.LEAVING),
            progress_at=90.0,
        ),
    )
    assert "if only some ranks come to /home/u/train.py:41, let all or none" in alone.fix
    uneven = _claim(
        "HANG005",
        stalled_job(
            waiting_member(0, step=41),
            sample_member(1, step=40, phase=Phase.LEAVING),
            progress_at=90.0,
        ),
    )
    assert uneven.fix.endswith("all ranks must run the same number")


def test_a_breakpoint_is_to_be_removed_and_not_the_line_after_it_mended() -> None:
    claim = _claim(
        "EXIT002", sample_job(ended_member(1, raised=("BdbQuit", "")), waiting_member(0))
    )
    assert claim.fix.startswith("remove the breakpoint()") and "fix " not in claim.fix


def test_the_line_that_ran_a_command_is_not_what_failed() -> None:
    said = (
        "CalledProcessError",
        "Command '['python', 'train.py']' returned non-zero exit status 1.",
    )
    claim = _claim("EXIT002", sample_job(ended_member(1, raised=said), waiting_member(0)))
    assert (
        claim.fix.startswith("see in logs/worker-1.log why the command")
        and "fix /" not in claim.fix
    )


UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error "
    "indicates that your module has parameters that were not used in producing loss.\n%s which did not "
    "receive grad for rank 1: %s\n In addition, you can set TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL"
)


def test_parameters_without_a_gradient_are_told_and_not_the_line_that_finds_them() -> None:
    for said, told in (("Parameter indices", "2 3"), ("Parameters", "aux.weight, aux.bias")):
        error = ("RuntimeError", UNUSED % (said, told))
        claim = _claim("EXIT002", sample_job(ended_member(1, raised=error), waiting_member(0)))
        assert f"parameters {told} got no gradient in the previous step" in [
            e.observed for e in claim.evidence
        ]
        assert "find_unused_parameters=True" in claim.fix and "fix " not in claim.fix


def test_an_aborted_member_is_told_with_its_last_call() -> None:
    line = "what():  op.preamble.length <= op.nbytes. 2244 vs 4. Received data size doesn't match"
    groups = member_with_calls(1, sample_signature("all_reduce", 25)).groups
    lost = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")
    view = sample_job(
        ended_member(0, raised=lost),
        ended_member(1, signal=6, last_line=line, member={"groups": groups}),
    )
    claim = _claim("EXIT009", view)
    assert any("at train.py:25 in train" in e.observed for e in claim.evidence)


def test_a_jax_program_that_gloo_aborts_is_told_with_the_line_of_its_step() -> None:
    line = (
        "what():  [enforce fail at external/gloo/gloo/transport/tcp/pair.cc:459] op.preamble.length <= "
        "op.nbytes. 8192 vs 64. Received data size doesn't match expected size."
    )
    notes = {"jitted at": "/home/u/train.py:57"}
    gone = ended_member(1, signal=6, last_line=line, member={"notes": notes})
    claim = _claim("EXIT009", sample_job(waiting_member(0), gone, now=104.0))
    told = [e.observed for e in claim.evidence]
    assert any("it called its step function at train.py:57" in t for t in told)
    assert any("still in it at train.py:41 in train" in t for t in told)


def test_an_unknown_failure_inside_the_framework_leads_to_its_log_and_the_line() -> None:
    dispatch = Frame("/v/site-packages/torch/distributed/distributed_c10d.py", 3090, "all_reduce")
    failed = ended_member(1, raised=("RuntimeError", "the fabric said no"), frames=(dispatch,))
    claim = _claim("EXIT002", sample_job(failed, waiting_member(0)))
    assert claim.summary == (
        "worker 1 failed inside the framework: RuntimeError: the fabric said no (called at "
        "train.py:41 in train)"
    )
    assert claim.fix == (
        "read logs/worker-1.log: the whole traceback is there; compare what each rank passes at "
        "/home/u/train.py:41"
    )
