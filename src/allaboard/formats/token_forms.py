"""Tokens that are recognized by their form, whatever stands around them.

Each form is as long as the real ones at least, and tests for what tells it from an ordinary word: the hash of
a commit, the name of a checkpoint and a UUID are none. The forms are those that the services document, or
that their tokens have; compare the patterns of GitHub's secret scanning.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from allaboard.formats.secret_names import class_changes
from allaboard.late_pattern import compile_late

MIN_AWS_CHANGES = 16
"""Changes between kinds of characters in a secret key of AWS: 24 on average, with a deviation of 3."""
FORM_HINTS = (
    *("gh", "github_pat_", "hf_", "sk-", "sk_", "rk_", "xox", "xapp-", "akia", "asia", "aiza", "glpat-"),
    *("ya29.", "dop_v1_", "npm_", "pypi-", "dckr_", "hvs.", "hvb.", "r8_", "nvapi-", "eyj", "wandb"),
    *("hooks.slack.com", "webhook"),
)  # fmt: skip
"""One of these is in every text that `TOKEN` matches, in lower case."""
TOKEN = compile_late(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}|hf_(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9]{16,}"
    # of OpenAI, Anthropic and others: a run without hyphens, since sk-learn-contrib-metrics is no token
    r"|sk-ant-[A-Za-z0-9_-]{16,}|sk-(?:[a-z]{2,8}\d{0,2}-){0,2}(?=[A-Za-z_]{0,64}\d)[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*"
    r"|[srp]k_(?:live|test)_[A-Za-z0-9]{12,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-(?=[A-Za-z-]{0,64}\d)[A-Za-z0-9-]{10,}"
    r"|AKIA[A-Z0-9]{12,}|ASIA[A-Z0-9]{12,}|AIza[\w-]{20,}|glpat-[\w-]{16,}"
    r"|ya29\.[\w-]{16,}|dop_v1_\w{16,}|npm_[A-Za-z0-9]{30,}|pypi-(?=[a-z0-9_-]{0,64}[A-Z])[\w-]{16,}"
    r"|dckr_(?:pat|oat)_[\w-]{16,}|hv[sb]\.[\w-]{16,}|r8_(?=[A-Za-z]{0,64}\d)[A-Za-z0-9]{16,}"
    r"|nvapi-[\w-]{16,}|wandb_v1_\w{16,}"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?:hooks\.slack\.com|[\w-]{1,64}\.webhook\.office\.com|discord(?:app)?\.com/api/webhooks)/[^\s\"'<>\\]+)"
)
"""Matches tokens of known forms; the last are addresses to which anybody who knows them may write."""
_HEX_KEY = compile_late(r"(?<![0-9A-Za-z])[0-9a-f]{40}(?![0-9A-Za-z])")
_WANDB = compile_late(r"\bwandb\b[^\n]{0,100}\b(?:key|login|profile)\b", re.I)
"""Matches how wandb speaks of a key; the hash of a commit has the same form as one."""
LOOK_BACK = 120
"""Characters before a key of wandb in which wandb must be named."""
_AWS_KEY = compile_late(r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_.-])")


def is_aws_secret_key(text: str) -> bool:
    """Return True if 40 characters are a secret key of AWS rather than a path or a hash."""
    has_all = (
        any(map(str.isupper, text)) and any(map(str.islower, text)) and any(map(str.isdigit, text))
    )
    return has_all and class_changes(text) >= MIN_AWS_CHANGES


def is_wandb_key(text: str, position: int) -> bool:
    """Return True if the 40 hexadecimal digits at this position of the text are a key of wandb."""
    return _WANDB.search(text, max(0, position - LOOK_BACK), position) is not None


def redact_forms(text: str, replacement: str) -> tuple[str, int]:
    """Return the text without tokens that their form gives away, and how many there were."""
    count = 0

    def replace(is_token: Callable[[re.Match[str]], bool]) -> Callable[[re.Match[str]], str]:
        def replace_token(match: re.Match[str]) -> str:
            nonlocal count
            if not is_token(match):
                return match[0]
            count += 1
            return replacement

        return replace_token

    lowered = text.lower()
    if "wandb" in lowered:
        text = _HEX_KEY.sub(replace(lambda m: is_wandb_key(m.string, m.start())), text)
    if any(hint in lowered for hint in FORM_HINTS):
        text = TOKEN.sub(replace(lambda _: True), text)
    text = _AWS_KEY.sub(replace(lambda m: is_aws_secret_key(m[0])), text)
    return text, count
