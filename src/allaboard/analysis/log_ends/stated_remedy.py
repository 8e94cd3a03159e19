"""What an error message itself says is to be done: a variable to set, a command, a request. Pure.

Whoever wrote a check mostly wrote the remedy beside it. It is passed on where no row of a table knows better.
"""

from __future__ import annotations

import re

from allaboard.late_pattern import compile_late

MAX_REMEDY_CHARS = 200
"""Characters of the sentence that are shown."""
_STATED = compile_late(
    r"(?:^|(?<=[.;:!?,)(\n] )|(?<=\n))"
    r"(?P<remedy>(?:[Pp]lease,? (?:also |manually |instead )?(?:set|use|install|check|make sure|ensure"
    r"|run|pass|specify|upgrade"
    r"|update|downgrade|reduce|increase|decrease|consider|add|remove|provide|try|verify|call|change|enable"
    r"|disable|reinstall|rebuild|launch|start|refer|adjust|login|log in|export|rerun|re-run|restart"
    r"|relaunch)\b"
    r"|[Tt]ry (?:setting|using|running|to (?!again)\w+|increasing|reducing|decreasing|upgrading|installing"
    r"|passing|--\w|`)"
    r"|[Cc]onsider (?:setting|using|passing|increasing|reducing|enabling|disabling|upgrading|`)"
    r"|[Mm]ake sure\b|Ensure (?!to\b)\w|(?:Restart|Rerun) (?:your|the|with)\b|[Yy]ou (?:can|may|should"
    r"|must|need to|have to) (?!also\b)(?:set|use|install|pass|call"
    r"|enable|disable|run|specify|increase|reduce|upgrade|try|add)\b"
    r"|[Rr]un (?:with|`|pip|python|export) ?[^\s,.;]"
    r"|[Uu]se (?:`|--\w|[A-Z][A-Z0-9_]{3,}=)|[Ss]et (?:`|--\w|[A-Z][A-Z0-9_]{3,}\b)"
    r"|(?:You may want to|[Ii]f you want to [^.\n]{3,60}?, (?:set|use|pass)"
    r"|[Tt]o (?:increase|raise|lower|reduce|change) [^.\n]{3,60}?, (?:set|use|pass|export))\b"
    r"|[Tt]o (?:fix|resolve|solve|avoid|enable|disable|suppress|override) (?:this|the|that|it)\b[^.\n]{0,80}?"
    r"\b(?:set|use|run|pass|add|call|install)\b"
    r"|pip3? install \S|Specify (?:`|--\w)|Did you (?:forget|mean)\b"
    r"|(?:Solution|Suggestion|Workaround|Remedy|Recommendation|Possible (?:solution|fix))s?: \S"
    r"|[Ss]etting (?:the )?(?:environment )?(?:variable )?`?[A-Z][A-Z0-9_]{3,}"
    r"|[Cc]heck (?:(?:that|if|whether|your)\b|`[a-z])"
    r"|[Rr]un (?:the )?[\"'`$]|[Tt]o increase (?:the|this) limit"
    r"|(?:It is recommended|We recommend|You might (?:want|need)|You'll need|You will need) to"
    r"|For (?:more )?(?:details?|information|logs?|the logs?)[,:]?"
    r" (?:please )?(?:run|see|use|check):? ?[`'\"]?\w"
    r"|(?:[Cc]ompile|[Rr]ebuild|[Rr]ecompile) (?:it )?with [-`'\"]{0,3}[A-Z]"
    r"|[Ii]ncrease (?:the|your)\b|[Rr]educe (?:the|your)\b|[Uu]pgrade (?:to|the|your)\b)"
    r"[^\n]{0,400})"
)
_ONLY_REPORTS = compile_late(
    r"\b(?:open an issue|report (?:this|a|it)|file (?:a|an) (?:bug|issue)|TORCH_USE_CUDA_DSA"
    r"|CUDA_LAUNCH_BLOCKING|reporting a bug|TORCHDYNAMO_VERBOSE"
    r"|check NCCL warnings|github\.com/\S+/issues|contact)\b",
    re.IGNORECASE,
)
"""Requests that do not mend anything."""
_SENTENCE_END = compile_late(r"[.;!?](?=\s+[A-Z(\[]|\s*$)|\n")


def stated_remedy(message: str) -> str:
    """Return the sentence of the message that says what to do; "" if none does."""
    for match in _STATED.finditer(message[:2000]):
        sentence = match["remedy"]
        end = _SENTENCE_END.search(sentence)
        sentence = sentence[: end.start()] if end is not None else sentence
        if not _ONLY_REPORTS.search(sentence):
            return sentence.strip(" ,:)")[:MAX_REMEDY_CHARS]
    return ""
