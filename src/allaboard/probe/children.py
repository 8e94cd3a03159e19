"""Exceptions of processes that multiprocessing makes: its own code catches and prints them, so that no
excepthook ever hears of one.

Hooked and tried on Python 3.9 to 3.13 and torch 2.13: ``BaseProcess._bootstrap``, in which a child calls its
``run``, and ``_wrap`` of `torch.multiprocessing.spawn`, which keeps exceptions for the parent.
"""

from __future__ import annotations

import functools
import sys

from . import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _process(module: Any) -> None:
    cls = module.BaseProcess
    bootstrap = cls._bootstrap

    @functools.wraps(bootstrap)
    def _bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.run = _told(self.run)
        return bootstrap(self, *args, **kwargs)

    cls._bootstrap = _bootstrap


def _spawn(module: Any) -> None:
    call = module._wrap

    @functools.wraps(call)
    def _wrap(fn: Any, *args: Any, **kwargs: Any) -> Any:
        return call(_told(fn), *args, **kwargs)

    module._wrap = _wrap


def _told(call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` with the same result; what it raises is recorded on its way up."""

    @functools.wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Exception:
            kind, value, traceback = sys.exc_info()
            try:
                if kind is not None and value is not None:
                    member.raised(kind, value, traceback)
            except Exception:
                pass
            raise

    return run


MODULES = {"multiprocessing.process": _process, "torch.multiprocessing.spawn": _spawn}
