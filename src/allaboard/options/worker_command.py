"""What is run: a script, a module, or a command as it is."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from allaboard.options.usage_error import raise_usage_error


def worker_command(words: list[str], module: str | None, is_command: bool) -> list[str]:
    from allaboard.launch.script_interpreter import python

    if is_command:
        if not words:
            raise_usage_error("nothing to run after --; try: allaboard run -- torchrun train.py")
        if shutil.which(words[0]) is None:
            raise_usage_error(
                f"no such command: {words[0]}; give its path, or see: command -v {words[0]}"
            )
        return words
    if module is not None:
        return [python(), "-m", module, *words]
    if not words:
        raise_usage_error("no script; try: allaboard run -n 4 train.py")
    script = Path(words[0])
    if not script.exists():
        raise_usage_error(
            f"no such script: {script} (in {Path.cwd()})"
            + (_program_hint(words) or _similar_script_hint(script))
        )
    if script.is_dir() and not (script / "__main__.py").exists():
        raise_usage_error(f"{script} is a folder without a __main__.py; give the script in it")
    if script.is_file() and not _is_python_source(script):
        raise_usage_error(
            f"{script} is not a Python script; to run any program: "
            f"allaboard run -- {' '.join(words[:3])}"
        )
    return [python(), *words]


def _program_hint(words: list[str]) -> str:
    """A command of PATH, as launchers are: it is run behind the dashes. Not where a script has its name."""
    if "/" in words[0] or shutil.which(words[0]) is None or Path(f"{words[0]}.py").exists():
        return ""
    ellipsis = " …" if len(words) > 3 else ""
    return f"; {words[0]} is a command: allaboard run -- {shlex.join(words[:3])}{ellipsis}"


def _similar_script_hint(script: Path) -> str:
    import difflib

    folder = script.parent if script.parent.is_dir() else Path()
    names = [p.name for p in folder.glob("*.py")]
    close = difflib.get_close_matches(script.name, names, n=1, cutoff=0.5)
    return f"; did you mean {folder / close[0]}?" if close else ""


def _is_python_source(script: Path) -> bool:
    """By its name, else by its beginning: source has no NUL byte and names no other interpreter."""
    try:
        with script.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise_usage_error(f"{script} cannot be read: {error.strerror}")
    if b"\0" in start and not start.startswith(b"PK"):
        return script.suffix == ".pyc"
    first_line = start.split(b"\n", 1)[0]
    return b"python" in first_line if first_line.startswith(b"#!") else True


def script_of_command(words: list[str], module: str | None, is_command: bool) -> str:
    """The Python file that the command runs, as far as its words tell; else ""."""
    if module is not None:
        path = Path(*module.split("."))
        files = [path.with_suffix(".py"), path / "__main__.py"]
    else:
        script_names = [w for w in words if w.endswith(".py")] if is_command else words[:1]
        files = [Path(w) / "__main__.py" if Path(w).is_dir() else Path(w) for w in script_names]
    return next((str(f) for f in files if f.is_file()), "")
