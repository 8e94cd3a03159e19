"""What follows from what, decided by declared relations alone: the codes here are no rules'."""

from __future__ import annotations

import pytest

from allaboard.contracts import Relations
from allaboard.facts import Certainty, Claim, Evidence, Finding, Severity, Stage, Who
from allaboard.rules.engine.catalogue import load_catalogue, load_rule
from allaboard.rules.engine.relations import (
    declared_relations,
    explains_lost_peers,
    family_of,
    may_join_run,
    order_findings,
    reports_absence,
    reports_stall,
    suppress_consequences,
    without_explained_last_resort,
    without_interruption,
    without_unknown_causes,
)

DECLARED = {
    "killed": Relations(begins_failure=True),
    "raised": Relations(begins_failure=True, reports_exception=True),
    "oom": Relations(begins_failure=True, replaces_message=True),
    "cancelled": Relations(begins_failure=True, interruption=True),
    "lost peer": Relations(consequence_only=True),
    "port taken": Relations(raised_as="EADDRINUSE|address in use"),
    "gpu": Relations(below_user_code=True),
    "silent": Relations(reports_silence=True),
    "node failed": Relations(precedes_all=True),
}


def relations_of(code: str) -> Relations:
    return DECLARED.get(code, Relations())


def finding(
    rule: str,
    *ranks: int,
    observed: str = "seen",
    origin: str = "a.log:1",
    severity: Severity = Severity.ERROR,
    certainty: Certainty = Certainty.CERTAIN,
) -> Finding:
    return Finding(
        rule=rule, name=rule, severity=severity, certainty=certainty, stage=Stage.EXIT,
        who=tuple(Who(index=r, rank=r) for r in ranks), summary=f"{rule} {ranks}", fix="",
        evidence=(Evidence(observed, origin),),
    )  # fmt: skip


def suppressed(
    ends: list[Finding], messages: list[Finding]
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The rules that are left, each with its number of members."""
    kept = suppress_consequences(ends, messages, relations_of)
    first, second = ([(f.rule, len(f.who)) for f in group] for group in kept)
    return first, second


def test_a_lost_peer_follows_from_a_known_failure() -> None:
    ends = [finding("killed", 1), finding("lost peer", 0)]
    assert suppressed(ends, [finding("lost peer")]) == ([("killed", 1), ("lost peer", 1)], [])


def test_without_one_the_message_says_more_than_the_end() -> None:
    assert suppressed([finding("lost peer", 0)], [finding("lost peer")]) == ([], [("lost peer", 0)])


@pytest.mark.parametrize(
    ("severity", "certainty", "left"),
    [
        (Severity.ERROR, Certainty.CERTAIN, [("killed", 0)]),
        (Severity.WARNING, Certainty.CERTAIN, [("killed", 0), ("lost peer", 0)]),
        (Severity.ERROR, Certainty.LIKELY, [("killed", 0), ("lost peer", 0)]),
    ],
)
def test_a_message_begins_a_failure_if_it_is_proven(
    severity: Severity, certainty: Certainty, left: list[tuple[str, int]]
) -> None:
    killed = finding("killed", severity=severity, certainty=certainty)
    assert suppressed([], [killed, finding("lost peer")])[1] == left


def test_what_a_rule_says_is_raised_because_of_it_follows_from_it() -> None:
    ends = [
        finding("raised", 0, observed="OSError: [Errno 98] address in use"),
        finding("raised", 1, observed="ValueError: no"),
        finding("lost peer", 2),
    ]
    messages = [finding("port taken"), finding("lost peer")]
    assert suppressed(ends, messages) == ([("raised", 1), ("lost peer", 1)], [("port taken", 0)])
    assert suppressed(ends, [])[0] == [("raised", 1), ("raised", 1), ("lost peer", 1)]


def test_a_message_says_less_than_the_end_whose_member_is_known() -> None:
    assert suppressed([finding("oom", 1)], [finding("oom"), finding("gpu")]) == (
        [("oom", 1)],
        [("gpu", 0)],
    )
    assert suppressed([], [finding("oom")])[1] == [("oom", 0)]


def test_a_failure_below_the_code_takes_the_members_of_the_exception() -> None:
    raised = finding("raised", 3, observed="RuntimeError: CUDA error\nmore", origin="train.py:7")
    message = finding("gpu", observed="rank 3: RuntimeError: CUDA error")
    (ends, messages) = suppress_consequences([raised], [message], relations_of)
    assert ends == []
    assert messages[0].who == raised.who
    assert messages[0].evidence == (message.evidence[0], Evidence("raised here", "train.py:7"))


@pytest.mark.parametrize("observed", ["RuntimeError: other", "RuntimeError: ", "RuntimeError"])
def test_another_exception_is_kept(observed: str) -> None:
    raised = finding("raised", 3, observed=observed)
    assert suppressed([raised], [finding("gpu", observed="CUDA error")]) == (
        [("raised", 1)],
        [("gpu", 0)],
    )


@pytest.mark.parametrize(
    ("silent", "left"), [((1,), []), ((1, 2), [("silent", 2)]), ((), [("silent", 0)])]
)
def test_silence_follows_from_the_ends_of_all_its_members(
    silent: tuple[int, ...], left: list[tuple[str, int]]
) -> None:
    assert suppressed([finding("killed", 1)], [finding("silent", *silent)])[1] == left


@pytest.mark.parametrize(
    ("origin", "certainty", "left"),
    [
        ("a.log:9", Certainty.LIKELY, ["cancelled"]),
        ("a.log:3", Certainty.LIKELY, ["cancelled", "lost peer"]),  # it may be why
        ("b.log:9", Certainty.LIKELY, ["cancelled", "lost peer"]),
        ("a.log:3", Certainty.CERTAIN, ["cancelled"]),  # a failure that begins is known
    ],
)
def test_what_was_lost_after_an_interruption_follows_from_it(
    origin: str, certainty: Certainty, left: list[str]
) -> None:
    cancelled = finding("cancelled", origin="a.log:5", certainty=certainty)
    messages = [cancelled, finding("lost peer", origin=origin)]
    assert [rule for rule, _ in suppressed([], messages)[1]] == left


def test_what_an_interrupted_run_logged_is_what_its_user_did() -> None:
    logged = [finding("cancelled"), finding("lost peer"), finding("gpu")]
    assert [f.rule for f in without_interruption(logged, relations_of)] == ["gpu"]


def test_findings_are_ordered_by_severity_and_by_what_precedes() -> None:
    ordered = order_findings(
        [
            finding("b", severity=Severity.INFO),
            finding("node failed", 1, certainty=Certainty.LIKELY),
            finding("killed", severity=Severity.WARNING),
            finding("raised"),
            finding("node failed", 2, 3),
        ],
        relations_of,
    )
    assert [(f.rule, len(f.who)) for f in ordered] == [
        ("node failed", 2),
        ("node failed", 1),
        ("raised", 0),
        ("killed", 0),
        ("b", 0),
    ]


def test_families() -> None:
    assert family_of("HANG017") == "HANG"
    assert reports_stall("HANG017") and not reports_stall("SLOW001")
    assert explains_lost_peers("EXIT001") and not explains_lost_peers("PS001")
    assert reports_absence("JOIN001") and not reports_absence("HANG001")
    assert may_join_run("PS001") and not may_join_run("EXIT001")


def test_what_a_rule_follows_from_is_a_rule() -> None:
    entries = load_catalogue().entries
    named = {code for e in entries for code in e.rule.relations.follows_from}
    assert named <= {e.code for e in entries}


def test_an_unknown_rule_declares_nothing() -> None:
    of = declared_relations(load_catalogue().entries)
    assert of("JOIN001").precedes_all
    assert of("ACME001") == Relations()


def test_a_rule_is_found_by_its_name() -> None:
    assert load_rule("server-missing") == load_catalogue().find_rule("PS003")
    with pytest.raises(LookupError):
        load_rule("missing")


def test_an_unknown_cause_in_init_gives_way_to_a_certain_difference() -> None:
    unknown = finding("waits", certainty=Certainty.UNKNOWN)
    likely = finding("waits", certainty=Certainty.LIKELY)
    assert without_unknown_causes([unknown, likely], [finding("differs")]) == [likely]
    guess = finding("differs", certainty=Certainty.LIKELY)
    assert without_unknown_causes([unknown, likely], [guess]) == [unknown, likely]
    assert without_unknown_causes([unknown], []) == [unknown]


def test_what_follows_from_another_claim_about_the_same_members_is_left_out() -> None:
    entries = {code: load_catalogue().find_rule(code) for code in ("DATA001", "HANG005")}
    assert all(entries.values())

    def claims(cause: tuple[int, ...], consequence: tuple[int, ...]) -> list[str]:
        made = [
            (entry, Claim(summary=code, who=tuple(Who(rank=r) for r in ranks), fix="", since=1.0,
                          certainty=Certainty.LIKELY))
            for code, ranks in (("HANG005", consequence), ("DATA001", cause))
            if ranks and (entry := entries[code]) is not None
        ]  # fmt: skip
        return [entry.code for entry, _ in without_explained_last_resort(made)]

    assert claims(cause=(1, 2), consequence=(1,)) == ["DATA001"]
    assert claims(cause=(1,), consequence=(2,)) == ["HANG005", "DATA001"]
    assert claims(cause=(), consequence=(1,)) == ["HANG005"]
