"""Tells when the user's own code imports a framework, and hooks it right after.

A finder at the head of sys.meta_path asks the other finders for the module and wraps that one
loader's exec_module, on the instance: everything else about the module stays as it was.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from .signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Hook = Callable[[Any], None]


class Watch:
    """``packages`` maps a top-level name to that of its framework, whose own import is told before and after;
    ``hooks`` maps a module to a call with that module, right after it has executed. ``load`` returns the
    hooks of a framework, which come to the others when one of its packages is first asked for."""

    def __init__(
        self,
        packages: Mapping[str, str],
        hooks: dict[str, Hook],
        importing: Callable[[str], None],
        imported: Callable[[str, str], None],
        load: Callable[[str], Mapping[str, Hook]] = lambda framework: {},
    ) -> None:
        self._announce = frozenset(packages.values())
        self._unloaded = dict(packages)
        self._load = load
        self._hooks = hooks
        self._importing = importing
        self._imported = imported
        self._wanted = set(packages) | set(hooks)
        self._asking: set[tuple[int, str]] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The meta path protocol. Costs one set look-up for every other module.

        Many programs only ask whether a framework is there (importlib.util.find_spec): a module
        stays wanted until it executes.
        """
        if name not in self._wanted:
            return None
        key = (get_ident(), name)
        if key in self._asking:  # another finder searches the whole path again
            return None
        framework = self._unloaded.get(name)
        if framework is not None:
            self._safely(name, self._add_hooks, framework)
            if name not in self._announce and name not in self._hooks:
                self._wanted.discard(name)
                return None
        self._asking.add(key)
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                if finder is self or find is None:
                    continue
                spec: ModuleSpec | None = find(name, path, target)
                if spec is not None:
                    self._wrap(name, spec.loader)
                    return spec
            return None
        finally:
            self._asking.discard(key)

    def _add_hooks(self, framework: str) -> None:
        """Adds what is hooked of this framework, the first time: its packages are all asked for before any
        of their modules."""
        for package in [p for p, f in self._unloaded.items() if f == framework]:
            del self._unloaded[package]
        hooks = self._load(framework)
        self._hooks.update(hooks)
        self._wanted.update(hooks)

    def _wrap(self, name: str, loader: Any) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            if module.__name__ != name:  # a loader that serves many modules, as zipimport's does
                execute(module)
                return
            try:
                del loader.exec_module
            # A loader that serves several modules (zipimport): the hook of another one took it off.
            except AttributeError:
                pass
            self._execute(name, execute, module)

        try:
            loader.exec_module = exec_module
        # A loader whose attributes cannot be set: this module goes without hooks.
        except AttributeError:
            pass

    def _execute(self, name: str, execute: Hook, module: ModuleType) -> None:
        announced = name in self._announce
        self._wanted.discard(name)
        if announced:
            self._safely(name, self._importing, name)
        try:
            execute(module)
        except BaseException:
            self._wanted.add(name)  # the program may try again
            if announced:
                self._safely(name, self._imported, name, "")
            raise
        hook = self._hooks.get(name)
        if hook is not None:
            self._safely(name, hook, module)
        if announced:
            self._safely(name, self._imported, name, "")

    def _safely(self, name: str, call: Callable[..., None], *arguments: object) -> None:
        """The user's import must succeed whatever we do."""
        try:
            call(*arguments)
        except Exception as error:
            try:
                self._imported(name, "%s: %s" % (type(error).__name__, error))
            except Exception:
                pass
            reraise_from_handler(error)
