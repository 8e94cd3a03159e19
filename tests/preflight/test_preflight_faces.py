"""The faces of a preflight: what a person and a program read."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from allaboard.faces.report.preflight_page import render_preflight_page
from allaboard.facts import Answer, Certainty, Finding, Link, Outcome, Severity, Stage
from allaboard.facts.preflight import Preflight, PreflightMember
from allaboard.preflight.run_preflight import output_file_of
from allaboard.preflight.summary import preflight_exit_code
from allaboard.report.preflight import as_json, as_text, format_rate, link_matrix, preflight_schema

WRONG = Finding(
    rule="NET006",
    name="link-blocked",
    severity=Severity.ERROR,
    certainty=Certainty.CERTAIN,
    stage=Stage.NETWORK,
    who=(),
    summary="h0 cannot connect to h1 <b>\x1b[31m",
    evidence=(),
    fix="open TCP",
)


def found(hosts: int = 2, **changes: object) -> Preflight:
    members = tuple(
        PreflightMember(
            rank=i, job="worker", index=i, host=f"h{i}", pid=9, state="aboard",
            facts={"version torch": "2.13.0", "data address": f"10.0.0.{i}"},
        )
        for i in range(hosts)
    )  # fmt: skip
    pairs = [(i, j) for i in range(hosts) for j in range(hosts) if i != j]
    links = tuple(
        Link(source=f"h{i}", target=f"h{j}", address="x:1",
             answer=Answer.SILENT if (i, j) == (0, 1) else Answer.ABOARD,
             seconds=0.0002, rate=4e8)
        for i, j in pairs
    )  # fmt: skip
    fields: dict[str, object] = {
        "allaboard": "1", "job": "j", "host": "h0", "leads": True, "outcome": "failed",
        "exit_code": 3, "started": "", "seconds": 2.0, "framework": "torch", "mode": "full",
        "place": "h0:1", "size": hosts, "members": members, "links": links,
        "collective": "", "findings": (WRONG,),
    }  # fmt: skip
    return Preflight(**(fields | changes))  # type: ignore[arg-type]


def test_the_matrix_says_who_does_not_reach_whom() -> None:
    assert link_matrix(found()) == [
        ["", "h0", "h1"],
        ["h0", "-", "no answer"],
        ["h1", "0.2 ms, 400 MB/s", "-"],
    ]
    assert "would not start: NET006 link-blocked" in as_text(found())


def test_a_slow_link_is_told_with_two_digits() -> None:
    assert [format_rate(r) for r in (4e5, 9.4e5, 9.94e6, 1.2e7, 4e8)] == [
        "0.4 MB/s", "0.9 MB/s", "9.9 MB/s", "12 MB/s", "400 MB/s",
    ]  # fmt: skip


def test_of_many_hosts_only_what_is_worth_a_look() -> None:
    table = link_matrix(found(20))
    assert table[0][2].startswith("379 of 380 links work") and len(table) == 7


def test_a_host_that_does_not_lead_says_one_line() -> None:
    assert as_text(found(leads=False, host="h1")).count("\n") == 1


def test_the_document_keeps_to_its_schema() -> None:
    jsonschema.validate(json.loads(as_json(found())), preflight_schema())


class _Balance(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links = 0
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        # A link within the page leads nowhere else.
        self.links += sum(
            name == "src" or (name == "href" and not (value or "").startswith("#"))
            for name, value in attrs
        )
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_harmless() -> None:
    balance = _Balance()
    page = render_preflight_page(found(), {})
    balance.feed(page)
    assert balance.open == [] and balance.links == 0
    assert not {"b", "script", "img", "link"} & balance.tags and "\x1b" not in page
    assert '<td class="bad">no answer</td>' in page and "default-src" in page


def test_codes() -> None:
    assert preflight_exit_code(Outcome.COMPLETED, (), 0) == 0
    assert preflight_exit_code(Outcome.COMPLETED, (WRONG,), 0) == 3
    assert preflight_exit_code(Outcome.FAILED, (), 0) == 3
    assert preflight_exit_code(Outcome.INTERRUPTED, (), 15) == 143


def test_every_rank_has_its_file() -> None:
    assert output_file_of(Path("a/found.json"), 0) == Path("a/found.json")
    assert output_file_of(Path("a/found.json"), 2) == Path("a/found.rank2.json")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing here says which task"),
        (["--hosts", "a"], "two hosts or more"),
        (["--hosts", "a,a"], "names a twice"),
        (["--hosts", "a,-oProxyCommand=x"], "that is not a host"),
        (["--timeout", "soon"], "seconds, 0 or more"),
        (["--coordinator", "node0"], "expected HOST:PORT"),
    ],
)
def test_wrong_use_is_told(words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "preflight", *words],
        capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
