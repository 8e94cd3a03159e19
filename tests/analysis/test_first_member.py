"""The first member that has not started: its name, the host's answer, and the command that starts it."""

from __future__ import annotations

import json
import shlex

import msgspec
import pytest

from allaboard.analysis.roll_call.first_member import first_member_name, start_advice, who_is_first
from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt
from allaboard.analysis.roll_call.waiting_message import waiting_message
from allaboard.facts import Answer, Declared, JobView
from allaboard.facts.samples import sample_declaration
from allaboard.rules.net002_refused import RULE

CLUSTER = {"chief:0": "h0:2222", "worker:0": "h1:2222", "worker:1": "h2:2222"}


def _declared(**fields: object) -> Declared:
    return msgspec.structs.replace(sample_declaration(1, 3), **fields)


def test_a_task_is_called_by_its_job_and_a_rank_as_its_framework_calls_it() -> None:
    task = _declared(framework="tensorflow", cluster=CLUSTER, origin="TF_CONFIG")
    assert first_member_name(task, "h0:2222") == "chief 0 (h0:2222)"
    assert who_is_first(task).job == "chief"
    assert first_member_name(_declared(framework="jax"), "h0:1") == "process 0 (h0:1)"
    assert first_member_name(_declared(framework="torch"), "h0:1") == "rank 0 (h0:1)"


def test_the_command_has_the_variables_of_the_first_one() -> None:
    torch = _declared(framework="torch", origin="RANK, MASTER_ADDR, MASTER_PORT")
    assert start_advice(torch, "h0:29500").startswith(
        "RANK=0 WORLD_SIZE=3 MASTER_ADDR=h0 MASTER_PORT=29500 allaboard run SCRIPT"
    )
    jax = _declared(framework="jax", origin="arguments of jax.distributed.initialize, JAX_*")
    assert "JAX_PROCESS_ID=0 allaboard run" in start_advice(jax, "h0:29500")
    task = _declared(framework="tensorflow", cluster=CLUSTER, origin="TF_CONFIG")
    (assignment, *_) = shlex.split(start_advice(task, "h0:2222"), comments=True)
    config = json.loads(assignment.removeprefix("TF_CONFIG="))
    assert config["task"] == {"type": "chief", "index": 0}
    assert config["cluster"] == {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]}


def test_what_only_the_script_says_is_not_put_into_variables() -> None:
    told = _declared(framework="torch", origin="arguments of init_process_group")
    assert start_advice(told, "h0:29500") == "start it there with this host's command and rank 0"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer.REFUSED, "its host is up and refuses the connection"),
        (Answer.SILENT, "no answer: its host is down, or a firewall drops the packets"),
        (Answer.NO_NAME, "its host's name is not known here"),
    ],
)
def test_the_waiting_line_has_one_state_and_the_hosts_answer(answer: Answer, text: str) -> None:
    line = waiting_message(example_attempt(answer, 5.0))
    assert line.startswith("waiting 5 s for rank 0 (node0:29500): not started yet (")
    assert text in line


def test_one_that_had_answered_before_is_not_said_to_have_never_started() -> None:
    line = waiting_message(example_attempt(Answer.REFUSED, 5.0, shook=True))
    assert "not started" not in line


def _summary(view: JobView) -> str:
    return "".join(c.summary for c in RULE.check(view))


def test_the_finding_names_the_first_one_and_not_the_host_that_waits() -> None:
    (claim,) = RULE.check(example_attempt(Answer.REFUSED, said="Connection refused"))
    assert [w.rank for w in claim.who] == [0]
    assert "Connection refused, 50 times" in claim.evidence[0].observed


def test_an_address_that_somebody_else_gave_is_still_called_the_meeting_place() -> None:
    view = example_attempt(Answer.REFUSED, is_given_by_user=True)
    (member,) = view.members
    assert member.declared is not None
    elsewhere = msgspec.structs.replace(member.declared, place="tcp://node7:29500")
    view = msgspec.structs.replace(
        view, members=(msgspec.structs.replace(member, declared=elsewhere),)
    )
    assert "rendezvous address" in _summary(view)
