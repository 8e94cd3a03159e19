"""Takes secrets out of what leaves the house: values of what is named like one, and what looks like one.

It errs on the side of taking out too much: a bug report without a variable can be asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from allaboard.formats import private_keys

REDACTED = "(redacted)"
LOGIN_PROGRAMS = frozenset(("docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras"))
"""Programs whose ``login`` takes a password by -p."""
MIN_SECRET_LENGTH = 6
"""Values below this length are not searched for elsewhere: they would take out half of every word."""
_NAME = (
    r"(?>[\w.-]*(?:token(?!s|iz)|secret|passw(?:or)?d|passwd|passphrase|(?<=[_.;-])pwd|credential|private[_-]?key"
    r"|(?<![a-z])(?:db|pg|my|mysql|redis|smtp|ftp|ssh|user|root|admin)?pass(?![a-z])|webhook"
    r"|connection[_-]?string|(?:account|shared|storage|master|encryption|signing|client|subscription)[_-]?key"
    r"|api[_-]?key|access[_-]?key|auth(?!or(?!i[sz]ation(?![a-z]))|entic)|cookie|(?<![a-z])jwt(?![a-z])"
    r"|(?<![a-z])key(?![a-z])))[\w.-]*+"
)
"""What calls itself so. Counts of tokens, tokenizers, dictionaries' keys and authors do not. A word is gone
through once, however often it says so: nothing that follows a name is part of a word."""
_SECRET_NAME = re.compile(_NAME, re.I)
_PLAIN = re.compile(r"(?:-?[0-9.]{1,20}|true|false|null|none)\Z", re.I)
"""Values that are no secret by their form; taking them out would break the JSON around them."""
_NUMBERS = re.compile(r"\[[\d\s,.-]*\]\Z")
_ASSIGNED = re.compile(
    rf"""(?P<name>(?<![\w.-]){_NAME})(?P<mark>\\?["\']?\s*(?:[=:]|%3[ad])\s*)"""
    r"""(?P<value>b?"(?:[^"\\\n]|\\.)*"|b?\'(?:[^\'\\\n]|\\.)*\'|\\"(?:[^"\\\n])*\\"|\[[^\]\n]{0,4096}\]|\{(?:[^{}]|\{[^{}]{0,512}\}){0,2048}+\}"""
    r"""|["\'][^"\'\\\n}}\]]+$|(?:Bearer|Basic|Token|Negotiate|Digest|ApiKey)\s+[^\s"\'\\]+"""
    r"""|[|>][-+]?\n[ \t]+\S[^\n]*|[^\s,;&"\'}}\])]+)""",
    re.I | re.M,
)
"""A value may be bytes, a list, a mapping, cut off behind its first quote, or a block of YAML."""
_LISTED = re.compile(
    rf"""(?P<head>(?<![\w.-]){_NAME}["\']?\s*:[ \t]*(?:#[^\n]*)?)(?P<value>(?:\n[ \t]*-[ \t]+[^\n]+)+)""",
    re.I,
)
"""A list in YAML, a line each."""
_NAMED = re.compile(
    rf"""(?P<head>(?<![\w.-])(?P<q>\\?["\']?)name(?P=q)\s*:\s*\\?["\']?{_NAME}\\?["\']?\s*,?\s*(?P=q)value(?P=q)\s*:\s*)"""
    r"""(?P<value>\\"(?:[^"\\\n])*\\"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'"""
    r"""|[|>][-+]?\n[ \t]+\S[^\n]*|[^\s,}\]]+)""",
    re.I,
)
"""A variable as pods have it, in YAML or JSON: its name, and its value behind that."""
_FLAG = re.compile(
    rf"""(?P<flag>(?<![\w-])--?{_NAME})(?P<mark>\s+)(?P<value>"[^"\n]*"|\'[^\'\n]*\'|[^\s-]\S*)""",
    re.I,
)
_PAIRED = re.compile(
    rf"""(?P<head>["\']--?{_NAME}["\']\s*,\s*)(?P<value>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')""",
    re.I,
)
_URL = re.compile(
    r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)(?:[^\s/@:\"\'<>]*:(?!\d+/)[^\s@\"\'<>]{1,256}@|[^\s/\"\'<>]{1,256}@)+",
    re.I,
)
"""Up to the last @ of the address: a password may hold one, and several servers may stand there."""
_BARE_USER = re.compile(
    r"""(?<![^\s="'])[\w.-]{1,64}+:[^\s:/@"'<>()]++@(?=[\w.-]+(?::\d{2,5})?(?![\w.:@-]))""", re.M
)
"""NAME:PASSWORD@HOST without a scheme, with its port or without, as an endpoint of a rendezvous is given."""
_COOKIE = re.compile(r"""(?P<head>\bcookie\\?["']?\s*:\s*\\?["']?)[^\s"'\\][^\n"'\\]*""", re.I)
"""A header with all of its cookies."""
_NETRC = re.compile(r"(?P<head>\blogin\s+\S+\s+password\s+)\S+")
_KNOWN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{12,}|ASIA[A-Z0-9]{12,}|AIza[\w-]{20,}|glpat-[\w-]{16,}"
    r"|ya29\.[\w-]{16,}|dop_v1_\w{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?:hooks\.slack\.com|[\w-]+\.webhook\.office\.com|discord(?:app)?\.com/api/webhooks)/[^\s\"'<>\\]+)"
)
"""The last are addresses to which whoever knows them may write."""
_PASSWORD = re.compile(
    r"""(?P<head>(?<![\w.-])[\w.-]*(?:passw(?:or)?d|passwd|passphrase|secret|token)=)"""
    r"""(?P<value>[^\s/"'<>,;&][^\s"'<>,;&]*)""",
    re.I,
)
"""What a message says of a password; no path of a file."""
_CLIENT = re.compile(
    r"""(?P<head>\b(?:mysql(?:dump|admin|import|check|show|sh)?|mariadb(?:-[a-z]+)?)(?=[\s"'])[^\n|;&]*?[\s"']-p"""
    r"""|\bsshpass["',\s]+-p["',\s]*"""
    r"""|\b(?:docker|podman|nerdctl|buildah|skopeo|helm|oras)\b(?=[^\n|;&]{0,200}\blogin\b)[^\n|;&]*?"""
    r"""[\s"']-p["',\s=]*)(?P<value>[^\s"',;&|\\]+)"""
)
"""Clients that take a password in one word with its flag, or behind a short one."""
_BEARER = re.compile(r"\b(?P<kind>Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_SIGNED = re.compile(
    r"(?P<head>(?:[?&;]|\\u0026)(?:X-(?:Amz|Goog)-Signature|signature|sig)="
    r"|\bX-(?:Amz|Goog)-Signature[=:]\s*|\bSignature=(?=[0-9a-f]{32}))(?P<value>[^\s&\"'<>\\,;]+)",
    re.I,
)
"""Signed addresses of object stores: whoever has the signature may read there."""
_USER = re.compile(
    r"""(?P<head>(?:(?<![\w.-])[\w.-]*(?<![a-z])user(?:pwd)?\\?["\']?\s*[=:]\s*|--user(?:pwd)?["',\s=]+"""
    r"""|\bcurl\b[^\n|;&]*?["'\s]-u["',\s]*)\\?["\']?[^\s:;,="\'@/\\]{1,64}:)(?P<value>[^\s:/"\',;&\\]+)""",
    re.I,
)
"""NAME:PASSWORD where a user is asked for."""


def is_secret_name(name: str) -> bool:
    """Whether a variable, a flag or a key of this name may hold a secret."""
    return bool(_SECRET_NAME.fullmatch(name.lstrip("-")))


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """The values of such variables, longest first: they are taken out wherever they stand."""
    found = {v for n, v in environment.items() if is_secret_name(n) and len(v) >= MIN_SECRET_LENGTH}
    return sorted(found, key=len, reverse=True)


def redact_text(text: str, known: Iterable[str] = ()) -> str:
    """The text without secrets; ``known`` are values that are taken out as they stand."""
    for value in known:
        text = text.replace(value, REDACTED)
    text = private_keys.remove_private_keys(text, REDACTED)
    text = _COOKIE.sub(lambda m: m["head"] + REDACTED, text)
    text = _PAIRED.sub(lambda m: m["head"] + _quoted(m["value"]), text)
    text = _NAMED.sub(lambda m: m["head"] + _quoted(m["value"]), text)
    text = _LISTED.sub(
        lambda m: m["head"] + re.sub(r"(- +)[^\n]+", rf"\1{REDACTED}", m["value"]), text
    )
    text = _ASSIGNED.sub(_assigned, text)
    text = _FLAG.sub(lambda m: m["flag"] + m["mark"] + REDACTED, text)
    text = _CLIENT.sub(lambda m: m["head"] + REDACTED, text)
    text = _URL.sub(lambda m: f"{m['scheme']}{REDACTED}@", text)
    text = _BARE_USER.sub(REDACTED + "@", text)
    text = _NETRC.sub(lambda m: m["head"] + REDACTED, text)
    text = _SIGNED.sub(lambda m: m["head"] + REDACTED, text)
    text = _USER.sub(lambda m: m[0] if _PLAIN.match(m["value"]) else m["head"] + REDACTED, text)
    text = _BEARER.sub(lambda m: f"{m['kind']} {REDACTED}", text)
    return _KNOWN.sub(REDACTED, text)


def redact_passwords(text: str) -> str:
    """The text without passwords where it says them outright or in addresses, and without tokens of known
    forms: for somebody who needs the rest of it."""
    text = _PASSWORD.sub(lambda m: m[0] if _PLAIN.match(m["value"]) else m["head"] + REDACTED, text)
    text = _URL.sub(lambda m: f"{m['scheme']}{REDACTED}@", text)
    text = _BARE_USER.sub(REDACTED + "@", text)
    text = _SIGNED.sub(lambda m: m["head"] + REDACTED, text)
    return _KNOWN.sub(REDACTED, text)


def redact_command(words: Sequence[str], known: Iterable[str] = ()) -> list[str]:
    """Arguments of a program without secrets: ``--token X`` is two words there."""
    found: list[str] = []
    hidden = False
    values = list(known)
    names = [w.rpartition("/")[2] for w in words]
    short = (
        ("-p",) if "sshpass" in names or ("login" in names and LOGIN_PROGRAMS & {*names}) else ()
    )
    users = ("-u", "--user", "--proxy-user", "-U") if "curl" in names else ()
    asked = False
    client = bool(words) and _CLIENT.match(f"{words[0].rpartition('/')[2]} -px") is not None
    for word in words:
        if client and re.match(r"-p.", word):
            found.append(f"-p{REDACTED}")
            continue
        flag, equals, _ = word.partition("=")
        user, colon, password = word.partition(":")
        if asked and colon and password and not _PLAIN.match(password):
            found.append(f"{user}:{REDACTED}")
            asked = False
            continue
        asked = word in users
        if users and re.match(r"-[uU][^:]+:.", word):
            found.append(f"{user}:{REDACTED}")
            continue
        if short and re.match(r"-p.", word):
            found.append(f"-p{REDACTED}")
            continue
        found.append(REDACTED if hidden and not word.startswith("-") else redact_text(word, values))
        hidden = not equals and word.startswith("-") and (is_secret_name(flag) or word in short)
    return found


_INNER = re.compile(
    r"""(?P<head>[:=]\s*)(?!\s*[-0-9.]+\s*[,}]|\s*(?:true|false|null|None)\b)"""
    r"""(?P<value>\\"(?:[^"\\])*\\"|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\s{}"\',\\][^\s{}"\',\\]*)"""
)
"""The values in a mapping; numbers are no secret by their form."""


def _assigned(match: re.Match[str]) -> str:
    value = match["value"]
    if value == "-" or value.startswith(REDACTED) or _PLAIN.match(value) or _NUMBERS.match(value):
        return match[0]
    return match["name"] + match["mark"] + _quoted(match["value"])


def _quoted(value: str) -> str:
    if value.startswith("{"):
        return _INNER.sub(lambda m: m["head"] + _quoted(m["value"]), value)
    if value.startswith("["):
        return "[" + ('\\"' if '\\"' in value else '"').join(("", REDACTED, "")) + "]"
    if value[:2] in ("b'", 'b"'):
        value = value[1:]
    for quote in ('\\"', '"', "'"):
        if value.startswith(quote):
            return f"{quote}{REDACTED}{quote}"
    return REDACTED
