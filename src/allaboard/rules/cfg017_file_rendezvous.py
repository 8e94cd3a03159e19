"""The file of a file:// rendezvous cannot be created here.

## Why it matters
PyTorch opens the file in a loop. If its folder does not exist or is not writable, the loop never ends:
every rank is silent forever, whatever timeout was passed.

## What to do
Create the folder (on every host, if it is not on a shared disk), or name one that exists.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, FilePlace, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    rendezvous_file, url = facts.place, facts.spec.values.get("init_url")
    if (
        rendezvous_file is None
        or url is None
        or (rendezvous_file.folder and rendezvous_file.writable)
    ):
        return
    folder = rendezvous_file.path.rpartition("/")[0] or "/"
    if not rendezvous_file.folder:
        problem, fix = f"the folder {folder} does not exist here", f"mkdir -p {shlex.quote(folder)}"
    else:
        thing = rendezvous_file.path if rendezvous_file.size >= 0 else folder
        problem, fix = f"{thing} may not be written by this user", f"ls -ld {shlex.quote(thing)}"
    yield Claim(
        summary=f"the rendezvous file cannot be made: {problem}",
        who=own_member(facts.spec),
        evidence=(url.evidence, Evidence(problem, "this host")),
        fix=fix,
        # A file may be meant for hosts that have the folder.
        certainty=Certainty.CERTAIN if facts.kind == "environment" else Certainty.LIKELY,
        severity=Severity.ERROR if facts.kind == "environment" else Severity.WARNING,
        where=url.origin.editor_place,
    )


def _facts(rendezvous_file: FilePlace) -> ConfigFacts:
    return sample_config_facts(
        init_url=f"file://{rendezvous_file.path}", place=rendezvous_file, source="init_url"
    )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "the folder of the file does not exist": (
            _facts(FilePlace(path="/shared/run/rdzv", folder=False, writable=False)),
            "the rendezvous file cannot be made: the folder /shared/run does not exist here",
        ),
        "a folder in which this user may not write": (
            _facts(FilePlace(path="/shared/rdzv", writable=False)),
            "the rendezvous file cannot be made: /shared may not be written by this user",
        ),
    },
    silent_on={"a folder in which this user may write": _facts(FilePlace(path="/shared/rdzv"))},
)
