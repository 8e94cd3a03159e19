"""The first thing to try for an error that names nothing known, by how it says that something failed. Pure.

This is the last resort before "collect the logs": not what failed is known, but how (refused, missing,
not permitted, too late, not understood), and each way has its own first look.
"""

from __future__ import annotations

import re

_FAILURES = (
    (
        r"[Pp]ermission denied|[Nn]ot permitted|\bEACCES\b|\bEPERM\b|[Aa]ccess (?:is )?denied"
        r"|not authorized|must be root"
        r"|privileges?\b",
        "id; ls -ld of what it names   # as the user of the job, on that host, in its container: owner, "
        "mode, read-only mount (findmnt), SELinux (getenforce)?",
    ),
    (
        r"certificate|\bTLS\b|\bSSL\b|x509|handshake failed|\btoken\b[^\n]{0,40}(?:invalid|expired"
        r"|missing)|private key",
        "date; openssl s_client -connect HOST:PORT </dev/null | head -20   # on both hosts: the clock, "
        "who signed the certificate, and whether both are to speak TLS",
    ),
    (
        r"(?:[Cc]annot|[Cc]ould not|[Ff]ailed to|[Uu]nable to|error)[^\n]{0,60}\b(?:dlopen|load"
        r"|resolve)\b[^\n]{0,60}"
        r"(?:librar|plugin|symbol|module|\.so\b)|undefined symbol|cannot open shared object",
        "ldd FILE | grep 'not found'; echo $LD_LIBRARY_PATH   # of the library or plugin that it names, "
        "on that host, in its container: is it there, of the version that the program was built for?",
    ),
    (
        r"(?:[Uu]nknown|[Uu]nrecogni[sz]ed|[Ii]llegal|[Ii]nvalid|[Uu]nexpected) (?:\w+ )?(?:option"
        r"|argument|flag|parameter|keyword|directive|key|field|command|type)\b",
        "look that word up in PROGRAM --help, or in the documentation of the installed version (PROGRAM "
        "--version): misspelt, renamed, or of another version than the one that runs first in PATH (which "
        "-a)?",
    ),
    (
        r"(?:[Ff]ailed to|[Cc]ould not|[Cc]annot|[Uu]nable to|[Cc]an't|error) (?:\w+ )?(?:pars|decod"
        r"|deserializ|unpack)\w*|[Ss]yntax "
        r"error|[Mm]alformed|not (?:correctly )?formatted|not valid (?:JSON|YAML)",
        "python -m json.tool FILE; cat -A FILE | head   # of the file or message that it read: cut off, "
        "of another version, with a tab or a carriage return? Does the same one stand on every host "
        "(sha256sum)?",
    ),
    (
        r"[Vv]ersion\b[^\n]{0,60}(?:mismatch|differ|not (?:supported|match)|incompatible|expected|older"
        r"|newer)"
        r"|[Ii]ncompatible|[Uu]nsupported version|protocol (?:version|mismatch)",
        "PROGRAM --version; pip list; ldd   # of both ends, on every host: install the same everywhere",
    ),
    (
        r"[Mm]ismatch|[Ii]nconsisten|[Dd]o(?:es)? not match|[Dd]iffer(?:s|ent)\b|disagree",
        "compare what it names between the hosts: the same files (sha256sum), settings (env | sort), "
        "versions; allaboard preflight compares them before a start",
    ),
    (
        r"[Cc]orrupt|[Cc]hecksum|[Tt]runcated|bad magic|unexpected end of",
        "ls -l; sha256sum   # of the file that it read, on every host: cut off by a full disk (df -h) or "
        "an earlier end? Copy or write it anew",
    ),
    (
        r"[Cc]onnection refused|ECONNREFUSED|[Nn]o route to host|unreachable|[Cc]ould not connect"
        r"|[Uu]nable to connect"
        r"|[Ff]ailed to connect|[Cc]annot connect|can't connect|connect\(\) (?:failed|error)",
        "ss -ltnp   # on the host that was to answer: does the process run, and listen on an address "
        "that this one reaches? From here: nc -vz HOST PORT; then its log, and a firewall",
    ),
    (
        r"[Tt]ime(?:d)?[ -]?out|[Tt]ook too long|deadline|did(?: not|n't) (?:respond|answer|reply)"
        r"|[Nn]ot respond\w*|no response",
        "find whom it waited for, and read that log: did it end, or is it only slow? While it waits, on "
        "each host: allaboard diagnose; from here: nc -vz HOST PORT",
    ),
    (
        r"[Nn]o such (?:file|process|device)|[Nn]ot found|[Dd]oes(?: not|n't) exist|[Cc]an(?:not|'t"
        r"| not) (?:find|locate|open|stat|access)|[Uu]nable to (?:find|locate|open|stat|access)"
        r"|[Cc]ould(?: not|n't) (?:find|locate|open|stat|access)|[Mm]issing\b|not (?:installed|available"
        r"|set|defined)",
        "look whether what it names is there: ls -l, command -v, env   # on every host, in its container "
        "and as the launcher starts it (ssh HOST 'env'): PATH, mounts and the working folder may differ",
    ),
    (
        r"[Aa]lready (?:exists?|running|in use|registered|initialized|started|locked|active)|[Dd]uplicate"
        r"|lock(?:ed)? by",
        "ps -ef | grep PROGRAM; ls -l of what it names   # left by an earlier start, or two of them run? "
        "End the one that is too many, remove what is left",
    ),
    (
        r"[Rr]esource temporarily unavailable|\bfork\b[^\n]{0,30}fail|(?:create|creation of"
        r"|start) (?:a )?(?:new )?thread|pthread_create"
        r"|[Tt]oo many|[Ee]xceed(?:s|ed|ing)?\b|[Ll]imit (?:of|is|reached)|[Nn]ot enough|[Ii]nsufficient"
        r"|[Ee]xhausted",
        "ulimit -a; free -g; df -h; cat /sys/fs/cgroup/pids.max   # in the process's own shell or "
        "container: which of them is the limit that it met? Raise that, or need less",
    ),
    (
        r"[Nn]ot (?:supported|implemented|built|compiled|enabled)|[Uu]nsupported|was built without"
        r"|without support",
        "PROGRAM --version, and its list of build options   # does this build have it? Install one that "
        "does, or choose another backend, plugin or option",
    ),
    (
        r"(?:[Ff]ailed|[Uu]nable|[Cc]ould not|[Cc]annot|error)[^\n]{0,30}\b(?:bind|listen|accept|socket"
        r"|getaddrinfo|resolve|interface)\w*",
        "ip -br address; ss -ltnp; getent hosts $(hostname)   # on that host: is the address its own, "
        "the port free, the name the one that the others know?",
    ),
    (
        r"(?:[Ff]ailed|[Uu]nable|[Cc]ould not|[Cc]annot|error|[Ee]rror)[^\n]{0,30}\b(?:read|writ|send"
        r"|receiv|recv|forward|deliver|transmi)\w*"
        r"|\bfd \d+\b|write failed|read error|[Uu]nexpected message|[Bb]ad file descriptor",
        "read the log of the process at the other end, and the lines above: a failed read or write "
        "mostly means that the other side had ended; else df -h, dmesg -T | tail on that host",
    ),
    (
        r"(?:[Ff]ailed|[Uu]nable|[Cc]ould not|[Cc]annot|error) (?:to )?(?:\w+ ){0,2}(?:start|launch|spawn"
        r"|exec|fork|creat|initiali[sz]|load|set ?up)\w*"
        r"|(?:start|launch|initiali[sz]ation|setup|startup) (?:of \S+ )?failed",
        "run that step by hand on that host, as the same user, and read what it prints; its service, if "
        "it is one: systemctl status NAME; journalctl -u NAME -n 50",
    ),
    (
        r"\b(?:died|crashed|was killed|terminated|exited|[Ll]ost|disappeared|gone|aborted)\b",
        "read the log of the process that it names: how did it end? On its host: dmesg -T | grep -iE "
        "'killed process|oom|xid'",
    ),
    (
        r"[Ii]nvalid|[Mm]ust(?: not)? be|[Ee]xpected|[Oo]ut of range|[Bb]ad (?:value|entry)|[Ii]llegal"
        r"|cannot be|[Cc]onflict|must have",
        "correct the value that it names where it is set: the command line, the configuration file, or the "
        "environment (env | sort) of that process; the same on every host",
    ),
    (
        r"[Ii]nternal error|should (?:never|not) happen|[Tt]his is a bug|[Uu]nexpected(?:ly)?\b|assert",
        "read the lines above: the first error there is the cause, this only what followed; if it stands "
        "alone, look for its words in the program's tracker, with the version (PROGRAM --version)",
    ),
)
_COMPILED = tuple((re.compile(pattern), advice) for pattern, advice in _FAILURES)


def advice_by_failure(message: str) -> str:
    """Return what to look at first, by the way in which the message says that something failed; "" if it does
    not say."""
    text = message[:1000]
    return next((advice for pattern, advice in _COMPILED if pattern.search(text)), "")
