"""Removal of secrets from texts that leave the host: values that are named like secrets, or look like them.

It removes too much rather than too little: whoever reads a bug report can ask for a variable that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from allaboard.formats import private_keys

REDACTED = "(redacted)"
"""Replaces a secret."""
LOGIN_PROGRAMS = frozenset(("docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras"))
"""Programs whose ``login`` takes a password with -p."""
MIN_SECRET_LENGTH = 6
"""Characters below which a value is not searched for elsewhere: it would remove half of every word."""
# (?>…) and *+ (Python 3.11): a word that does not match is not tried again in shorter pieces.
_NAME = (
    r"(?>[\w.-]*(?:token(?!s|iz)|secret|passw(?:or)?d|passwd|passphrase|(?<=[_.;-])pwd|credential|private[_-]?key"
    r"|(?<![a-z])(?:db|pg|my|mysql|redis|smtp|ftp|ssh|user|root|admin)?pass(?![a-z])|webhook"
    r"|connection[_-]?string|(?:account|shared|storage|master|encryption|signing|client|subscription)[_-]?key"
    r"|api[_-]?key|access[_-]?key|auth(?!or(?!i[sz]ation(?![a-z]))|entic)|cookie|(?<![a-z])jwt(?![a-z])"
    r"|(?<![a-z])key(?![a-z])))[\w.-]*+"
)
"""Matches names of secrets.

Counts of tokens, tokenizers, dictionaries' keys and authors are not secrets. A word is scanned once, however
often it matches: nothing that follows a name is part of a word.
"""
_SECRET_NAME = re.compile(_NAME, re.I)
_PLAIN = re.compile(r"(?:-?[0-9.]{1,20}|true|false|null|none)\Z", re.I)
"""Matches values whose form says that they are no secret; removing them would break the JSON around them."""
_NUMBERS = re.compile(r"\[[\d\s,.-]*\]\Z")
_ASSIGNED = re.compile(
    rf"""(?P<name>(?<![\w.-]){_NAME})(?P<mark>\\?["\']?\s*(?:[=:]|%3[ad])\s*)"""
    r"""(?P<value>b?"(?:[^"\\\n]|\\.)*"|b?\'(?:[^\'\\\n]|\\.)*\'|\\"(?:[^"\\\n])*\\"|\[[^\]\n]{0,4096}\]|\{(?:[^{}]|\{[^{}]{0,512}\}){0,2048}+\}"""
    r"""|["\'][^"\'\\\n}}\]]+$|(?:Bearer|Basic|Token|Negotiate|Digest|ApiKey)\s+[^\s"\'\\]+"""
    r"""|[|>][-+]?\n[ \t]+\S[^\n]*|[^\s,;&"\'}}\])]+)""",
    re.I | re.M,
)
"""Matches an assignment. The value may be bytes, a list, a mapping, cut off after its first quote, or a block
of YAML."""
_YAML_LIST = re.compile(
    rf"""(?P<head>(?<![\w.-]){_NAME}["\']?\s*:[ \t]*(?:#[^\n]*)?)(?P<value>(?:\n[ \t]*-[ \t]+[^\n]+)+)""",
    re.I,
)
"""Matches a list in YAML, one element a line."""
_NAME_AND_VALUE = re.compile(
    rf"""(?P<head>(?<![\w.-])(?P<q>\\?["\']?)name(?P=q)\s*:\s*\\?["\']?{_NAME}\\?["\']?\s*,?\s*(?P=q)value(?P=q)\s*:\s*)"""
    r"""(?P<value>\\"(?:[^"\\\n])*\\"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'"""
    r"""|[|>][-+]?\n[ \t]+\S[^\n]*|[^\s,}\]]+)""",
    re.I,
)
"""Matches a variable of a pod, in YAML or JSON: its name, then its value."""
_FLAG = re.compile(
    rf"""(?P<flag>(?<![\w-])--?{_NAME})(?P<mark>\s+)(?P<value>"[^"\n]*"|\'[^\'\n]*\'|[^\s-]\S*)""",
    re.I,
)
_FLAG_PAIR = re.compile(
    rf"""(?P<head>["\']--?{_NAME}["\']\s*,\s*)(?P<value>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')""",
    re.I,
)
_URL = re.compile(
    r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)(?:[^\s/@:\"\'<>]*:(?!\d+/)[^\s@\"\'<>]{1,256}@|[^\s/\"\'<>]{1,256}@)+",
    re.I,
)
"""Matches up to the last @ of the address: a password may contain one, and several servers may be listed."""
_BARE_USER = re.compile(
    r"""(?<![^\s="'])[\w.-]{1,64}+:[^\s:/@"'<>()]++@(?=[\w.-]+(?::\d{2,5})?(?![\w.:@-]))""", re.M
)
"""Matches NAME:PASSWORD@HOST without a scheme, with or without a port, as a rendezvous endpoint is given."""
_COOKIE = re.compile(r"""(?P<head>\bcookie\\?["']?\s*:\s*\\?["']?)[^\s"'\\][^\n"'\\]*""", re.I)
"""Matches a header with all of its cookies."""
_NETRC = re.compile(r"(?P<head>\blogin\s+\S+\s+password\s+)\S+")
_KNOWN_TOKEN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{12,}|ASIA[A-Z0-9]{12,}|AIza[\w-]{20,}|glpat-[\w-]{16,}"
    r"|ya29\.[\w-]{16,}|dop_v1_\w{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?:hooks\.slack\.com|[\w-]+\.webhook\.office\.com|discord(?:app)?\.com/api/webhooks)/[^\s\"'<>\\]+)"
)
"""Matches tokens of known forms; the last are addresses to which anybody who knows them may write."""
_PASSWORD = re.compile(
    r"""(?P<head>(?<![\w.-])[\w.-]*(?:passw(?:or)?d|passwd|passphrase|secret|token)=)"""
    r"""(?P<value>[^\s/"'<>,;&][^\s"'<>,;&]*)""",
    re.I,
)
"""Matches a password in a message, but not the path of a file."""
_CLIENT_PASSWORD = re.compile(
    r"""(?P<head>\b(?:mysql(?:dump|admin|import|check|show|sh)?|mariadb(?:-[a-z]+)?)(?=[\s"'])[^\n|;&]*?[\s"']-p"""
    r"""|\bsshpass["',\s]+-p["',\s]*"""
    r"""|\b(?:docker|podman|nerdctl|buildah|skopeo|helm|oras)\b(?=[^\n|;&]{0,200}\blogin\b)[^\n|;&]*?"""
    r"""[\s"']-p["',\s=]*)(?P<value>[^\s"',;&|\\]+)"""
)
"""Matches clients that take a password in one word with its flag, or after a short flag."""
_BEARER = re.compile(r"\b(?P<kind>Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_SIGNED_URL = re.compile(
    r"(?P<head>(?:[?&;]|\\u0026)(?:X-(?:Amz|Goog)-Signature|signature|sig)="
    r"|\bX-(?:Amz|Goog)-Signature[=:]\s*|\bSignature=(?=[0-9a-f]{32}))(?P<value>[^\s&\"'<>\\,;]+)",
    re.I,
)
"""Matches signed addresses of object stores: whoever has the signature can read there."""
_USER_PASSWORD = re.compile(
    r"""(?P<head>(?:(?<![\w.-])[\w.-]*(?<![a-z])user(?:pwd)?\\?["\']?\s*[=:]\s*|--user(?:pwd)?["',\s=]+"""
    r"""|\bcurl\b[^\n|;&]*?["'\s]-u["',\s]*)\\?["\']?[^\s:;,="\'@/\\]{1,64}:)(?P<value>[^\s:/"\',;&\\]+)""",
    re.I,
)
"""Matches NAME:PASSWORD where a user is expected."""


def is_secret_name(name: str) -> bool:
    """Return True if a variable, a flag or a key of this name may hold a secret."""
    return bool(_SECRET_NAME.fullmatch(name.lstrip("-")))


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables that may hold a secret, longest first, so that they can be removed
    everywhere."""
    values = {
        v for n, v in environment.items() if is_secret_name(n) and len(v) >= MIN_SECRET_LENGTH
    }
    return sorted(values, key=len, reverse=True)


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without secrets; the values of ``secrets`` are removed wherever they stand."""
    for value in secrets:
        text = text.replace(value, REDACTED)
    text = private_keys.remove_private_keys(text, REDACTED)
    text = _COOKIE.sub(lambda m: m["head"] + REDACTED, text)
    text = _FLAG_PAIR.sub(lambda m: m["head"] + _redact_quoted(m["value"]), text)
    text = _NAME_AND_VALUE.sub(lambda m: m["head"] + _redact_quoted(m["value"]), text)
    text = _YAML_LIST.sub(
        lambda m: m["head"] + re.sub(r"(- +)[^\n]+", rf"\1{REDACTED}", m["value"]), text
    )
    text = _ASSIGNED.sub(_redact_assignment, text)
    text = _FLAG.sub(lambda m: m["flag"] + m["mark"] + REDACTED, text)
    text = _CLIENT_PASSWORD.sub(lambda m: m["head"] + REDACTED, text)
    text = _URL.sub(lambda m: f"{m['scheme']}{REDACTED}@", text)
    text = _BARE_USER.sub(REDACTED + "@", text)
    text = _NETRC.sub(lambda m: m["head"] + REDACTED, text)
    text = _SIGNED_URL.sub(lambda m: m["head"] + REDACTED, text)
    text = _USER_PASSWORD.sub(
        lambda m: m[0] if _PLAIN.match(m["value"]) else m["head"] + REDACTED, text
    )
    text = _BEARER.sub(lambda m: f"{m['kind']} {REDACTED}", text)
    return _KNOWN_TOKEN.sub(REDACTED, text)


def redact_passwords(text: str) -> str:
    """Return the text without passwords that are stated outright or in addresses, and without known tokens.

    This is for a person who needs the rest of the text.
    """
    text = _PASSWORD.sub(lambda m: m[0] if _PLAIN.match(m["value"]) else m["head"] + REDACTED, text)
    text = _URL.sub(lambda m: f"{m['scheme']}{REDACTED}@", text)
    text = _BARE_USER.sub(REDACTED + "@", text)
    text = _SIGNED_URL.sub(lambda m: m["head"] + REDACTED, text)
    return _KNOWN_TOKEN.sub(REDACTED, text)


def redact_command(words: Sequence[str], secrets: Iterable[str] = ()) -> list[str]:
    """Return the arguments of a program without secrets; ``--token X`` is two words there."""
    redacted_words: list[str] = []
    hides_next = False
    known_secrets = list(secrets)
    names = [w.rpartition("/")[2] for w in words]
    short_flags = (
        ("-p",) if "sshpass" in names or ("login" in names and LOGIN_PROGRAMS & {*names}) else ()
    )
    user_flags = ("-u", "--user", "--proxy-user", "-U") if "curl" in names else ()
    after_user_flag = False
    is_database_client = (
        bool(words) and _CLIENT_PASSWORD.match(f"{words[0].rpartition('/')[2]} -px") is not None
    )
    for word in words:
        if is_database_client and re.match(r"-p.", word):
            redacted_words.append(f"-p{REDACTED}")
            continue
        flag, equals, _ = word.partition("=")
        user, colon, password = word.partition(":")
        if after_user_flag and colon and password and not _PLAIN.match(password):
            redacted_words.append(f"{user}:{REDACTED}")
            after_user_flag = False
            continue
        after_user_flag = word in user_flags
        if user_flags and re.match(r"-[uU][^:]+:.", word):
            redacted_words.append(f"{user}:{REDACTED}")
            continue
        if short_flags and re.match(r"-p.", word):
            redacted_words.append(f"-p{REDACTED}")
            continue
        redacted_words.append(
            REDACTED
            if hides_next and not word.startswith("-")
            else redact_text(word, known_secrets)
        )
        hides_next = (
            not equals and word.startswith("-") and (is_secret_name(flag) or word in short_flags)
        )
    return redacted_words


_MAPPING_VALUE = re.compile(
    r"""(?P<head>[:=]\s*)(?!\s*[-0-9.]+\s*[,}]|\s*(?:true|false|null|None)\b)"""
    r"""(?P<value>\\"(?:[^"\\])*\\"|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\s{}"\',\\][^\s{}"\',\\]*)"""
)
"""Matches the values in a mapping; numbers are no secret by their form."""


def _redact_assignment(match: re.Match[str]) -> str:
    value = match["value"]
    if value == "-" or value.startswith(REDACTED) or _PLAIN.match(value) or _NUMBERS.match(value):
        return match[0]
    return match["name"] + match["mark"] + _redact_quoted(match["value"])


def _redact_quoted(value: str) -> str:
    if value.startswith("{"):
        return _MAPPING_VALUE.sub(lambda m: m["head"] + _redact_quoted(m["value"]), value)
    if value.startswith("["):
        return "[" + ('\\"' if '\\"' in value else '"').join(("", REDACTED, "")) + "]"
    if value[:2] in ("b'", 'b"'):
        value = value[1:]
    for quote in ('\\"', '"', "'"):
        if value.startswith(quote):
            return f"{quote}{REDACTED}{quote}"
    return REDACTED
