"""The members would meet at different places, or disagree on how many they are.

## Why it matters
A member with another MASTER_ADDR or MASTER_PORT connects where no one listens. With another WORLD_SIZE, rank
0's store counts to another number: its own init succeeds, and the first collective stops.

## What to do
Give all members the majority's value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Pasted, Value, sample_config_facts
from allaboard.facts.address import canonical_address

_FIELDS = ("world_size", "master_addr", "master_port", "init_url", "coordinator", "backend",
           "rdzv_endpoint", "rdzv_id", "nnodes")  # fmt: skip


def check(facts: Pasted) -> Iterator[Claim]:
    for field in _FIELDS:
        values = {n: s.values[field] for n, s in facts.specs if field in s.values}
        if len(values) < 2:
            continue
        comparable = {
            n: canonical_address(v.text) if "addr" in field else v.text for n, v in values.items()
        }
        usual_text = Counter(comparable.values()).most_common(1)[0][0]
        model = next(n for n, text in comparable.items() if text == usual_text)
        for name, spec in facts.specs:
            if name not in values or comparable[name] == usual_text:
                continue
            value = values[name]
            variable = value.origin.variable or value.origin.flag or field
            yield Claim(
                summary=f"{name} has {variable}={value.text}, {model} {values[model].text}",
                who=own_member(spec),
                evidence=(
                    value.evidence,
                    Evidence(
                        f"{sum(t == usual_text for t in comparable.values())} of {len(comparable)} have "
                        f"{values[model].text}",
                        model,
                    ),
                ),
                fix=_fix(value, variable, values[model].text),
                where=value.origin.editor_place,
            )


def _fix(value: Value, variable: str, text: str) -> str:
    return value.origin.assignment_of(text) if value.origin.flag else f"export {variable}={text}"


def _pasted_sizes(*sizes: str) -> Pasted:
    return Pasted(
        specs=tuple(
            (
                f"node{i}.env",
                sample_config_facts(rank=str(i), world_size=size, source="torch_env").spec,
            )
            for i, size in enumerate(sizes)
        )
    )


def _pasted_addresses(*addresses: str) -> Pasted:
    return Pasted(
        specs=tuple(
            (
                f"node{i}.env",
                sample_config_facts(rank=str(i), master_addr=address, source="torch_env").spec,
            )
            for i, address in enumerate(addresses)
        )
    )


RULE = Rule(
    reads=Pasted,
    check=check,
    fires_on={
        "one of three members has another MASTER_ADDR": (
            _pasted_addresses("localhost", "ip6-localhost", "node1"),
            "node2.env has MASTER_ADDR=node1, node0.env localhost",
        ),
        "one of three members has another WORLD_SIZE": (
            _pasted_sizes("3", "3", "2"),
            "node2.env has WORLD_SIZE=2, node0.env 3",
        ),
    },
    silent_on={
        "all members have the same WORLD_SIZE": _pasted_sizes("2", "2"),
        "different names of the same host, such as localhost and `::1`": _pasted_addresses(
            "localhost", "::1", "ip6-localhost", "127.0.0.1"
        ),
    },
    relations=Relations(follows_from=("JOIN006", "JOIN007")),
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
