"""Commands that check the things that an error message names: a file, a program, a host, a device. Pure.

Messages whose wording is new name the same kinds of things as those that are known. Whoever looks into one
begins with what it names: is the file there, does the host answer, which version is installed?
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from allaboard.late_pattern import compile_late

MAX_CHECKS = 2
"""Checks that are named for one message; more are no first step."""
_COMMAND = compile_late(
    r"(?:\b[Cc]ommand:? '?(?P<list>\[.{3,2000})|\b[Cc]ommand:? ['\"`](?P<text>.{3,2000}?)(?:['\"`](?: |$)|$)"
    r"|\b[Ff]ailed (?:to run|running) (?:command:? )?(?P<run>[a-z][\w.-]{1,40}(?: -{0,2}[\w=./:,-]+){1,40}))"
)
"""A command that a program ran, as Python's subprocess and others quote it."""
_ARGUMENT = compile_late(r"'((?:[^'\\]|\\.)*)'")
_HOST = (
    r"(?P<host>\d{1,3}(?:\.\d{1,3}){3}|(?![cgtn]pu[-_]?\d\b|(?:cuda|rank|step|epoch|device|python|torch|sm|line|port)"
    r"[-_.\d])(?=[^\s:@]{0,80}[\d.])[A-Za-z][\w-]{1,62}(?:\.[\w-]{1,62}){0,8})"
)
"""A name with a number or a dot in it, or an address, where the words before say that it is a host."""
_UNRESOLVED = compile_late(
    r"(?:host (?:address|name) (?:for|of)|resolve (?:host ?name|host|address)?:?|[Uu]nknown host:?"
    r"|[Hh]ost not found:?|find (?:host|address)(?: for)?) ['\"(]?(?P<name>[A-Za-z0-9][\w.-]{0,252}\w)"
)
_SERVER = compile_late(
    r"\b(?:server|host|node|peer|worker|to|at|on) ['\"(]?(?P<host>[A-Za-z0-9][\w.-]{1,252})"
    r"['\")]?(?:,| at| on)? port:? (?P<port>\d{2,5})\b"
)
_REACHED = compile_late(
    r"(?:\b(?:execd|sshd?|daemon|proxy|agent)@|\bssh (?:-\w+ )*|\b(?:executor|container|worker|task)s?"
    r" [\w-]{1,60} on (?:host )?|\bon (?:host:? )?|\b(?:host|node|hostname|machine):? '?)"
    + _HOST
    + r"(?=[\s,:;)'\"]|\.?$)"
)
"""The host of which a message speaks."""
_NO_ENTRY = compile_late(
    r"[Aa]uthenticat|publickey|[Pp]ermission denied|[Hh]ost key|no password|passwordless"
)
_MISSING = compile_late(
    r"[Nn]o such file|(?<![Kk]ey )not found|does not exist|doesn't exist|cannot open|can't open"
    r"|[Cc]ould not open|[Ff]ailed to open|[Pp]ermission denied|[Rr]ead-only|[Nn]ot a directory"
    r"|[Ii]s a directory|missing|cannot (?:read|access|find|load|stat)|[Cc]annot find"
    r"|[Cc]ould not (?:find|load|read)|not executable|[Ii]nvalid \w{0,20} ?(?:file|path)"
    r"|exec\w* (?:error|failed)|corrupt|[Ee]xec format"
)
_PATH = compile_late(
    r"(?<![\w/:.\-@])(?P<path>(?!/(?:job|replica|task|device)\b)(?:/|\.{1,2}/|~/|[A-Za-z]:\\)"
    r"(?:[^\s'\"`,;:()\[\]<>|]|:(?=\w)){2,400})"
)
_OPENED = compile_late(
    r"(?:can't|cannot|[Cc]ould not|[Ff]ailed to) (?:open|load|read|find|stat|access) (?:the )?(?:file )?"
    r"['\"](?P<path>[^'\"\s]{2,400})['\"]"
)
"""The very file that was not opened, where other paths stand before it."""
_SPOOLED = compile_late(r"(?:can't|cannot) open (?:file )?'?/var/spool/(?:slurm\w*|pbs|torque)\S*")
_PROGRAM = compile_late(
    r"(?:execvp? error on file|[Ff]ailed to exec(?:ute)?|exec(?:utable)? (?:file )?(?:not found)?:?"
    r"|command not found:?|sh: (?:line \d+: )?) ?['\"]?(?P<name>\.{0,2}/?[\w./-]{2,200})"
)
_URL = compile_late(r"(?P<url>(?P<scheme>[a-z][a-z0-9+]{1,11})://[^\s'\"`<>()\[\]{},;]{2,300})")
_READ_URL = {
    "http": "curl -sSI {url}",
    "https": "curl -sSI {url}",
    "gs": "gsutil ls -l {url}",
    "s3": "aws s3 ls {url}",
    "hdfs": "hdfs dfs -ls {url}",
    "viewfs": "hdfs dfs -ls {url}",
}
"""What shows whether this host can read a URL of that scheme."""
_ADDRESS_SCHEMES = ("tcp", "grpc", "ucx", "tls", "redis", "akka", "ray", "env", "ipc")
"""Schemes before addresses of processes: what is at them is no file."""
_INFINIBAND = compile_late(r"\b(?P<device>(?:mlx[45]|hfi1|bnxt_re|irdma|efa|rdmap)_?\d+(?:s\d)?)\b")
_INTERFACE = compile_late(
    r"\b(?:interface|dev(?:ice)?|nic):? ['\"]?(?P<name>(?:eth|en[opsx]|ib|bond|wl|lo|docker|veth)\w{0,14})\b"
)
_GPU_INDEX = compile_late(
    r"\b(?:GPU|cuda:|device(?: ordinal)?|[Dd]evice[=:]) ?#?(?P<index>\d{1,2})\b(?=[^\n]*\b(?:GPU|CUDA|cuda))"
    r"|\b(?:GPU|cuda:) ?#?(?P<index2>\d{1,2})\b"
)
_VERSION = compile_late(
    r"version mismatch|[Bb]uilt (?:against|with|for)|incompatible|[Uu]ndefined symbol|GLIBC\w*_\d"
    r"|[Uu]nsupported (?:\w+ )?version|requires? (?:\w+ )?(?:version )?[<>=]|newer than|older than"
    r"|compiled (?:against|with|using)|is not defined for option|[Uu]nknown (?:argument|option|flag)"
    r"|no kernel image|not compiled with"
)
_SOFTWARE = compile_late(
    r"\b(?P<name>OpenSSL|MPICH|Open MPI|CUDA|cuDNN|NCCL|Triton|triton|ptxas|protobuf|grpc|UCX|libfabric|glibc"
    r"|GLIBC|PMIx|numpy|NumPy|torch|TensorFlow|tensorflow|jaxlib|jax|libtpu|Python|Java|Scala|Spark)\b"
)
_CONTAINER = compile_late(
    r"[Cc]ontainer (?:not found|['\"(]|\S{1,80} (?:not found|is waiting|terminated|in pod))"
)
_EXECUTOR = compile_late(
    r"\b[Ee]xecutor (?P<number>\d{1,6})\b|\bcontainer_(?P<container>[\w]{6,80})\b"
)
_CREDENTIALS = compile_late(
    r"\b(?:401|403)\b (?:[Uu]nauthori[sz]ed|[Ff]orbidden|[Cc]lient [Ee]rror)|[Uu]nauthori[sz]ed|[Ff]orbidden"
    r"|[Cc]redentials?\b|[Aa]ccess (?:is )?denied|UNAUTHENTICATED|PERMISSION_DENIED|gated repo"
    r"|(?:token|certificate|ticket) (?:has |is )?(?:expired|invalid|missing)"
)
_LIMIT = compile_late(
    r"[Qq]uota|[Rr]ate limit|[Tt]oo [Mm]any [Rr]equests|\b429\b"
    r"|insufficient (?:capacity|resources?|cpu|memory)|[Ss]tockout|not enough resources"
)
_DESCRIPTORS = compile_late(r"FD_?SETSIZE|\bEMFILE\b|[Tt]oo many open files|file descriptors?")


_OPTION = compile_late(
    r"(?P<program>[\w./-]{1,60}): (?:error: )?(?:unrecognized|unknown|invalid|illegal) (?:option"
    r"|argument)s?:? ['\"`]?(?P<option>-{0,2}[A-Za-z][\w-]{1,60})"
)
_PACKAGE = compile_late(
    r"(?:locate package|matching distribution found for|satisfies the requirement"
    r"|No package|No module named) '?(?P<name>[\w.+=<>-]{2,60})"
)


def named_checks(message: str) -> str:
    """Return commands that check what the message names; "" if it names nothing that can be checked."""
    return "; ".join(list(dict.fromkeys(_checks(message[:4000])))[:MAX_CHECKS])


def without_names(message: str) -> str:
    """Return the message without paths, URLs and commands: their words say nothing of what it is about."""
    text = _COMMAND.sub("command ", message)
    return _PATH.sub(" ", _URL.sub(" ", text))


def _checks(message: str) -> Iterator[str]:
    if match := _COMMAND.search(message):
        yield from _command_checks(match)
    yield from _host_checks(message)
    if match := _OPTION.search(message):
        yield (
            f"{match['program']} --help | grep -e {match['option']}   # on that host: does this version, "
            "with its plugins, know that option?"
        )
    if match := _PACKAGE.search(message):
        yield f"install {match['name']} in the environment that runs, on every host; is that its name here?"
    if _DESCRIPTORS.search(message):
        yield "ulimit -n   # in the shell that starts it: raise it, or open fewer files and connections"
    yield from _file_checks(message)
    if _VERSION.search(message):
        names = list(dict.fromkeys(m["name"] for m in _SOFTWARE.finditer(message)))[:2]
        about = f" of {' and '.join(names)}" if names else ""
        yield (
            f"compare the versions{about} that were built for each other with those that run (pip list; ldd; "
            "echo $LD_LIBRARY_PATH $PATH), on every host"
        )
    if _CONTAINER.search(message):
        yield "kubectl get pods; kubectl describe pod NAME   # does that container run, and since when?"
    if match := _EXECUTOR.search(message):
        name = (
            f"executor {match['number']}" if match["number"] else f"container_{match['container']}"
        )
        yield (
            f'read stderr of {name} (Spark\'s page "Executors"; yarn logs -applicationId ID): it says how it '
            "ended; a limit of memory: spark.executor.memoryOverhead"
        )
    yield from _device_checks(message)
    if _CREDENTIALS.search(message):
        yield "log in anew on every host, as the user that runs the job: is its token still valid?"
    if _LIMIT.search(message):
        yield "ask for less, or for a higher quota: the service's own tool shows what is used and allowed"


def _command_checks(match: re.Match[str]) -> Iterator[str]:
    """Yield how to run the quoted command by hand, whose own output says why it failed.

    Only its program is named: whoever wrote the log must not write what somebody types.
    """
    words = _ARGUMENT.findall(match["list"] or "") or (match["text"] or match["run"] or "").split()
    program = re.split(r"[\\/]", words[0])[-1] if words else ""
    if re.fullmatch(r"\w[\w.+-]{0,60}", program):
        yield f"run that command of {program} by hand on that host, and read what it prints"


def _host_checks(message: str) -> Iterator[str]:
    if match := _UNRESOLVED.search(message):
        yield f"getent ahosts {match['name']}   # on that host; no output: name it in DNS or /etc/hosts"
    if match := _SERVER.search(message):
        yield f"from this host: nc -vz {match['host']} {match['port']}; read the log of the process there"
    elif (
        (match := _REACHED.search(message))
        # No host's name has an underscore: a node of a graph of TensorFlow has.
        and "_" not in match["host"]
        and not match["host"].endswith((".py", ".so", ".cc", ".cpp"))
    ):
        host = match["host"]
        if _NO_ENTRY.search(message):
            yield f"ssh -o BatchMode=yes {host} true   # as the same user, without a password"
        else:
            yield f"ssh {host} uptime; then read the log of the process on {host}, which it names"


def _file_checks(message: str) -> Iterator[str]:
    program = _PROGRAM.search(message)
    if program is not None and _MISSING.search(message):
        name = program["name"].rstrip(".:")
        short = name.rpartition("/")[2]
        yield f"command -v {short}; ls -l {name}   # on every host, as the launcher starts it"
        return
    if match := _URL.search(message):
        url, scheme = match["url"].rstrip("."), match["scheme"]
        if scheme in _READ_URL:
            yield f"{_READ_URL[scheme].format(url=shlex.quote(url))}   # on that host, as the user of the job"
        elif scheme not in _ADDRESS_SCHEMES:
            yield f"see where {url} is set: does this build know such a path, and is it meant?"
        return
    if _SPOOLED.search(message):
        yield (
            "cd $SLURM_SUBMIT_DIR, and give the script by its whole path   # Slurm runs a copy of the batch "
            "script: $0 and dirname lead to its spool, where nothing else lies"
        )
        return
    if _MISSING.search(message) and (match := _OPENED.search(message) or _PATH.search(message)):
        path = shlex.quote(match["path"].rstrip("."))
        yield f"ls -ld {path}; findmnt -T {path}   # on every host, in its container: is it there?"


def _device_checks(message: str) -> Iterator[str]:
    if match := _INFINIBAND.search(message):
        yield f"ibstat {match['device']}; perfquery   # on that host: is the port up, do its errors grow?"
    if match := _INTERFACE.search(message):
        yield f"ip -s link show {match['name']}   # on that host: is it up, with an address?"
    if match := _GPU_INDEX.search(message):
        yield f"nvidia-smi -i {match['index'] or match['index2']}   # on that host"
