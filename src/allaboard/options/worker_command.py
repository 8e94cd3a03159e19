"""The command of a worker: a script, a module, or any program."""

from __future__ import annotations

import shlex
from pathlib import Path

from allaboard.options.usage_error import raise_usage_error


def worker_command(
    command_line: list[str], module: str | None, is_command: bool, workers: int | None = None
) -> list[str]:
    """Return the words of a worker's command line.

    ``command_line`` is a script and its arguments, or the arguments of ``module``, or with ``is_command`` a
    whole command. ``workers`` is the number that the user gave with -n, which suggestions repeat.

    Raises:
        UsageError: there is no such script or command, or it is not Python.
    """
    from allaboard.launch.script_interpreter import script_interpreter

    if is_command:
        if not command_line:
            raise_usage_error("nothing to run after --; try: allaboard run -- torchrun train.py")
        import shutil  # not where a script is started: its workers wait for it

        if shutil.which(command_line[0]) is None:
            raise_usage_error(
                f"no such command: {command_line[0]}; {_missing_command_hint(command_line[0])}"
            )
        return command_line
    if module is not None:
        return [script_interpreter(), "-m", module, *command_line]
    if not command_line:
        raise_usage_error("no script; try: allaboard run -n 4 train.py")
    script = Path(command_line[0])
    if not script.exists():
        raise_usage_error(
            f"no such script: {script} (in {Path.cwd()})"
            + (_program_hint(command_line, workers) or _similar_script_hint(script))
        )
    if script.is_dir() and not (script / "__main__.py").exists():
        raise_usage_error(f"{script} is a folder without a __main__.py; give the script in it")
    if script.is_file() and not _is_python_source(script):
        raise_usage_error(
            f"{script} is not a Python script; to run any program: "
            f"allaboard run -- {' '.join(command_line[:3])}"
        )
    return [script_interpreter(), *command_line]


def _missing_command_hint(command: str) -> str:
    """Return how to start a command that PATH does not have: allaboard may run in an environment that was not
    activated."""
    import sys  # this is a module of the way that starts a script: it loads no more than that needs

    beside = Path(sys.executable).parent / command
    if "/" not in command and beside.is_file():
        path = shlex.quote(str(beside))
        return f"it is beside this allaboard, in an environment that is not activated: give {path}"
    return f"give its path, or see: command -v {command}"


def _program_hint(command_line: list[str], workers: int | None) -> str:
    """Return the hint that the word is a command of PATH, as launchers are; "" if it is not, or if there is
    a script of that name."""
    import shutil

    if (
        "/" in command_line[0]
        or shutil.which(command_line[0]) is None
        or Path(f"{command_line[0]}.py").exists()
    ):
        return ""
    ellipsis = " …" if len(command_line) > 3 else ""
    count = f"-n {workers} " if workers is not None else ""
    return (
        f"; {command_line[0]} is a command: allaboard run {count}-- {shlex.join(command_line[:3])}"
        f"{ellipsis}"
    )


def _similar_script_hint(script: Path) -> str:
    """Return the hint at a script with a similar name in the same folder; "" if there is none."""
    import difflib

    folder = script.parent if script.parent.is_dir() else Path()
    names = [p.name for p in folder.glob("*.py")]
    close = difflib.get_close_matches(script.name, names, n=1, cutoff=0.5)
    return f"; did you mean {folder / close[0]}?" if close else ""


def _is_python_source(script: Path) -> bool:
    """Return True unless the file begins like something else: source has no NUL byte and names no other
    interpreter."""
    try:
        with script.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise_usage_error(f"{script} cannot be read: {error.strerror}")
    if b"\0" in start and not start.startswith(b"PK"):
        return script.suffix == ".pyc"
    first_line = start.split(b"\n", 1)[0]
    return b"python" in first_line if first_line.startswith(b"#!") else True


def script_of_command(command_line: list[str], module: str | None, is_command: bool) -> str:
    """Return the Python file that the command runs, as far as its words say; else ""."""
    if module is not None:
        path = Path(*module.split("."))
        files = [path.with_suffix(".py"), path / "__main__.py"]
    else:
        script_names = (
            [w for w in command_line if w.endswith(".py")] if is_command else command_line[:1]
        )
        files = [path for w in script_names for path in (Path(w), Path(w) / "__main__.py")]
    return next((str(f) for f in files if _is_file(f)), "")


def _is_file(path: Path) -> bool:
    """Return True if it is a file; False also if the system does not say."""
    try:
        return path.is_file()
    except OSError:
        return False
