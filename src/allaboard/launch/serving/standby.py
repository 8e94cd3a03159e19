"""Waits, with what the script imports already imported, and then becomes the task that it is told to be:
one that has died, or a rank of the next round. It holds no port and no name until then. It runs in the user's
Python, where allaboard need not be installed.

Called with the FIFO on which it is told; the script, or "" where that is a module; and for a rank the
record of what it had imported (`probe/import_record.py`). Without one, the script's text says what to import.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from . import main_module, script_imports
else:  # run by its path, below no package
    import main_module
    import script_imports

ALWAYS_IMPORTED = "tensorflow"


def _prepare(script: str) -> None:
    """Do the early steps. What fails here fails in the script too, where the user sees it."""
    text = Path(script).read_bytes() if script and Path(script).is_file() else b""
    for name, value, default in [*script_imports.early_steps(text), (ALWAYS_IMPORTED, None, False)]:
        try:
            if value is None:
                if script_imports.is_installed(name):
                    importlib.import_module(name)
            elif not default or name not in os.environ:
                os.environ[name] = value
        except BaseException:
            continue


def import_recorded(record: dict[str, Any], count: int) -> str:
    """Import the installed ones of the first ``count`` modules of the record, in its order and with the
    environment that the rank had before it imported a framework. Return why this process would differ from a
    new one, or ""."""
    replaced: dict[str, tuple[str | None, str | None]] = {}
    for name, value in record["environment"].items():
        replaced[name] = os.environ.get(name), value
        script_imports.set_variable(name, value)
    modules = record["modules"][:count]
    for name, file in modules:
        if file and any(folder in file for folder in script_imports.INSTALLED_FOLDERS):
            try:
                importlib.import_module(name)
            except (
                BaseException
            ):  # made by its package alone, as six.moves is: the script makes it again
                continue
    script_imports.restore_variables(replaced)
    for name, file in modules:
        loaded = getattr(sys.modules.get(name), "__dict__", {}).get("__file__")
        if file and loaded and loaded != file and name not in main_module.MAIN_NAMES:
            return f"{name} is {file} in the script, and {loaded} without it"
    return ""


def _prepare_as_recorded(path: str, count: int | None) -> None:
    """Import what the record says. If the script has set a variable between its imports, this program begins
    anew and leaves out what came after that."""
    first_environment = dict(os.environ)
    record = json.loads(Path(path).read_text())
    why_unfit = import_recorded(record, len(record["modules"]) if count is None else count)
    if why_unfit:
        Path(f"{sys.argv[1]}.unfit").write_text(why_unfit)
        sys.exit(1)
    # What the imports have set themselves is set here, too.
    is_set_alike = all(os.environ.get(n) == v for n, v in record["later"].items())
    if count is None and not is_set_alike:
        arguments = [sys.executable, *sys.argv, str(record["early"])]
        os.execve(sys.executable, arguments, first_environment)


def _read_order(fifo: str) -> dict[str, Any]:
    """Block until the agent has written the order, and return it. Exit if the agent has gone."""
    text = Path(fifo).read_bytes()
    if not text:
        sys.exit(0)
    order: dict[str, Any] = json.loads(text)
    return order


def main() -> None:
    own_module = sys.modules["__main__"]  # kept: this function's globals are its
    fifo, script = sys.argv[1:3]
    sys.path.pop(0)  # this folder: the script's takes its place
    for module in (main_module, script_imports):
        del sys.modules[module.__name__]  # the script may have one of the same name
    if len(sys.argv) > 3:
        _prepare_as_recorded(sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None)
    else:
        _prepare(script)
    order = _read_order(fifo)
    arguments: list[str] = order["words"]
    os.environ.update(order["environment"], ALLABOARD_PID=str(os.getpid()))
    main_module.hide_own_frames(__file__)
    main_module.take_part_as(int(order["worker"]), arguments)
    main_module.run_as_main(arguments)
    del own_module


if __name__ == "__main__":
    main()
