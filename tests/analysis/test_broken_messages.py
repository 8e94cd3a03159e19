"""Known messages whose lines somebody has broken."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.facts import Exhibit

MESSAGE = KnownMessage(
    key="cannot reach",
    pattern=r"cannot reach the (?P<what>key value store|file) in time",
    rule="LOG001",
    says="a process waited for the {what}",
    fix="start the {what}",
    proves_not="why",
    sample="cannot reach the key value store in time",
    source="made up",
)


def test_what_a_message_quotes_stands_in_one_line() -> None:
    whole = Exhibit(name="a.log", data=b"x\ncannot reach the key value store in time\n")
    broken = Exhibit(name="a.log", data=b"x\ncannot reach the key\n    value store in\ntime\n")
    for exhibit in (whole, broken):
        (heard,) = find_known_messages(exhibit, (MESSAGE,))
        assert heard.says == "a process waited for the key value store"
        assert heard.fix == "start the key value store"
