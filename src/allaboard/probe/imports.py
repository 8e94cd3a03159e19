"""Tells when the user's own code imports a framework, and hooks it right after.

A finder at the head of sys.meta_path asks the other finders for the module and wraps that one
loader's exec_module, on the instance: everything else about the module stays as it was.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Hook = Callable[[Any], None]


class Watch:
    """``announce`` maps a top-level name to a call before and after its import; ``hooks`` maps a
    module to a call with that module, right after it has executed."""

    def __init__(
        self,
        announce: Mapping[str, object],
        hooks: Mapping[str, Hook],
        importing: Callable[[str], None],
        imported: Callable[[str, str], None],
    ) -> None:
        self._announce = announce
        self._hooks = hooks
        self._importing = importing
        self._imported = imported
        self._wanted = set(announce) | set(hooks)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The meta path protocol. Costs one set look-up for every other module."""
        if name not in self._wanted:
            return None
        self._wanted.discard(name)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                self._wrap(name, spec.loader)
                return spec
        self._wanted.add(name)
        return None

    def _wrap(self, name: str, loader: Any) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            try:
                del loader.exec_module
            except AttributeError:
                pass
            if name in self._announce:
                self._importing(name)
            execute(module)
            hook = self._hooks.get(name)
            if hook is not None:
                try:
                    hook(module)
                except Exception as error:  # the user's import must succeed whatever we do
                    self._imported(name, "%s: %s" % (type(error).__name__, error))
            if name in self._announce:
                self._imported(name, "")

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass
