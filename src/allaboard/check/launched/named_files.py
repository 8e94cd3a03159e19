"""The files that the commands of a batch script name: Python scripts, accelerate's config files, hostfiles.

They are looked for among the files that were given, beside the batch script, and in the working folder. They
are read only for what they say about the launch: a file that was not given gets no findings of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from allaboard.facts import OPAQUE, Node, Value
from allaboard.facts.configuration.script import LaunchDemands
from allaboard.formats.python_commands import PYTHON_PROGRAM

MAX_FILES = 16
"""Files that are read for one batch script."""
_MAX_BYTES = 2**19


class LaunchedFiles:
    """Reader of the files that one batch script names; each is read once."""

    def __init__(self, batch_file: str, given: Iterable[str]) -> None:
        self._batch_file = batch_file
        self._given = tuple(given)
        self._texts: dict[str, tuple[str, str] | None] = {}
        self._demands: dict[str, LaunchDemands | None] = {}

    def demands_of(self, command: Sequence[Value]) -> LaunchDemands | None:
        """Return what the Python script of a command expects; None if there is none, or it is not found."""
        name = next((w.text for w in command if w.text.endswith(".py")), "")
        if not name and self._runs_argument(command):
            scripts = [g for g in self._given if g.endswith(".py")]
            name = scripts[0] if len(scripts) == 1 else ""
        if not name or name in self._demands:
            return self._demands.get(name)
        from allaboard.formats.python.launch_demands import read_launch_demands

        found = self._read(name)
        self._demands[name] = read_launch_demands(found[1], found[0]) if found else None
        return self._demands[name]

    @staticmethod
    def _runs_argument(command: Sequence[Value]) -> bool:
        """Return True if Python runs what only the caller knows: `python $1`."""
        return any(
            PYTHON_PROGRAM.match(word.text) and OPAQUE in script.text
            for word, script in itertools.pairwise(command)
        )

    def config_of(self, value: Value) -> tuple[str, Node] | None:
        """Return the name and the content of a config file in YAML; None if it cannot be read."""
        from allaboard.facts import FormatError
        from allaboard.formats.yaml_nodes import read_yaml

        found = self._read(value.text)
        try:
            tree = next(iter(read_yaml(found[1])), None) if found else None
        except FormatError:
            return None
        return (found[0], tree) if found and tree is not None and tree.kind == "map" else None

    def text_of(self, value: Value) -> tuple[str, str] | None:
        """Return the name and the text of a file that a command names; None if it is not found."""
        return self._read(value.text)

    def _read(self, name: str) -> tuple[str, str] | None:
        if name not in self._texts and len(self._texts) < MAX_FILES and OPAQUE not in name:
            self._texts[name] = self._read_first(name)
        return self._texts.get(name)

    def _read_first(self, name: str) -> tuple[str, str] | None:
        relative = name.removeprefix("./")
        given = [g for g in self._given if g == relative or g.endswith("/" + relative)]
        folder = Path(self._batch_file).parent if self._batch_file != "<stdin>" else Path()
        for candidate in (*map(Path, given), folder / relative, Path(relative)):
            try:
                # A FIFO without a writer would block the open for ever.
                if candidate.is_file() and candidate.stat().st_size <= _MAX_BYTES:
                    return str(candidate), candidate.read_text(encoding="utf-8")
            except (OSError, ValueError):
                continue
        return None


def config_values(tree: Node) -> Mapping[str, str]:
    """Return the scalars at the top of a config file by name."""
    return {
        n: node.text for n, node in tree.items.items() if node.kind not in ("map", "list", "null")
    }


def with_arguments(
    demands: LaunchDemands | None, commands: Iterable[Sequence[Value]]
) -> LaunchDemands:
    """Return the demands with those that stand in the command line, of LightningCLI or Hydra
    (``--trainer.num_nodes 4``, ``trainer.num_nodes=4``) or of the script's own options."""
    demands = demands or LaunchDemands()
    flags = {f: field for field, spellings in demands.option_flags for f in spellings}
    values: dict[str, Value | None] = {}
    for command in commands:
        for position, word in enumerate(command):
            name, equals, text = word.text.partition("=")
            plain = name.lstrip("-+")
            field = flags.get(name, "")
            if plain in ("trainer.num_nodes", "trainer.devices"):
                field = plain.removeprefix("trainer.")
            if not field:
                continue
            following = command[position + 1].text if position + 1 < len(command) else ""
            origin = msgspec.structs.replace(word.origin, flag=name)
            value = Value(text if equals else following, origin)
            if value.integer is not None:
                values[field] = value
            elif name in flags:
                values[field] = None  # it replaces the default by what only a run could tell
    return msgspec.structs.replace(demands, **values) if values else demands
