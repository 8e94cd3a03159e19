"""Builds the hot path of the probe in C, where there is a C compiler and Python's headers.

Without them, or with ``ALLABOARD_PURE=1``, allaboard is installed without it, and the probe does the same in
Python. An installation never fails for this; `pip install -v` shows the line that says what was done.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any
from zlib import crc32

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # the tests use `compile_events` alone
    BuildHookInterface = object  # type: ignore[assignment,misc]

PROBE = Path(__file__).parent / "src" / "allaboard" / "probe"
SOURCE, NAME = PROBE / "_events.c", "_events.abi3.so"
FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
COMPILE_TIMEOUT_S = 120


class NotBuiltError(Exception):
    """There is no compiler or no header, or what was compiled cannot be loaded."""


def compile_events(folder: Path, flags: tuple[str, ...] = ()) -> Path:
    """Compile into this folder and try to load it; return the file. Raises NotBuiltError."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    include = Path(sysconfig.get_path("include"))
    if not compiler or shutil.which(compiler[0]) is None:
        raise NotBuiltError("there is no C compiler")
    if not (include / "Python.h").exists():
        raise NotBuiltError(f"there is no Python.h in {include}")
    built = folder / (NAME + f".{os.getpid()}")
    define = f"-DSOURCE_CRC={crc32(SOURCE.read_bytes())}u"
    command = [*compiler, *FLAGS, *flags, define, f"-I{include}", "-o", str(built), str(SOURCE)]
    load = "import importlib.machinery as m, importlib.util as u, sys;"
    load += "s = u.spec_from_file_location('_events', sys.argv[1],"
    load += " loader=m.ExtensionFileLoader('_events', sys.argv[1]));"
    load += "s.loader.exec_module(u.module_from_spec(s))"
    try:
        for words in (command, [sys.executable, "-S", "-c", load, str(built)]):
            subprocess.run(words, check=True, capture_output=True, timeout=COMPILE_TIMEOUT_S)
        # At once: a process that starts meanwhile finds the old one, or the new one.
        return built.replace(folder / NAME)
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise NotBuiltError(" ".join(last) or f"exit code {error.returncode}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuiltError(str(error)) from error
    finally:
        built.unlink(missing_ok=True)


class EventsBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds it to a wheel, or puts it beside its source for an editable installation."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it packs a wheel."""
        is_editable = version == "editable"
        self._folder = PROBE if is_editable else Path(tempfile.mkdtemp(prefix="allaboard-build-"))
        try:
            if os.environ.get("ALLABOARD_PURE", "0") not in ("", "0"):
                if is_editable:
                    (PROBE / NAME).unlink(missing_ok=True)
                raise NotBuiltError("ALLABOARD_PURE is set")
            built = compile_events(self._folder)
        except (NotBuiltError, OSError) as error:
            self.app.display_warning(f"allaboard: the probe's hot path stays in Python: {error}")
            return
        self.app.display_info("allaboard: the probe's hot path is built in C")
        if not is_editable:
            build_data["force_include"][str(built)] = f"allaboard/probe/{NAME}"
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called by hatchling when the wheel is there."""
        if self._folder != PROBE:
            shutil.rmtree(self._folder, ignore_errors=True)
