"""A rank that waits for a key of PyTorch's store, which only its source line shows."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.stalls.awaited_end import awaited_end_advice, awaited_end_clause
from allaboard.facts import Frame, Member
from allaboard.facts.samples import USER, sample_member, sample_stack

END = "an answer from 127.0.0.1:29500"


def at_line(text: str) -> Member:
    stack = sample_stack(Frame("/home/u/train.py", 9, "main", text), USER)
    return sample_member(1, stack=msgspec.structs.replace(stack, awaited_end=END))


@pytest.mark.parametrize(
    "text", ["store.wait([f'ckpt-{step}'])", "flag = self.tcp_store.get('eval')"]
)
def test_a_key_is_missed(text: str) -> None:
    member = at_line(text)
    clause = "waiting for a key of the store at 127.0.0.1:29500 that nobody has set"
    assert awaited_end_clause(member) == clause
    assert "see which rank should set this key" in awaited_end_advice((member,))


@pytest.mark.parametrize("text", ["event.wait()", "storage.get(url)", "requests.get(store_url)"])
def test_another_answer_is_missed(text: str) -> None:
    assert awaited_end_clause(at_line(text)) == f"waiting for {END}"
    assert awaited_end_advice((at_line(text),)) == ""
