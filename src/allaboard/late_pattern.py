"""Regular expressions that are compiled when first used: a start uses few of the hundreds that are there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Generic, TypeVar

T = TypeVar("T", str, bytes)

if TYPE_CHECKING:
    compile_late = re.compile
else:

    class LatePattern(Generic[T]):
        """A compiled regular expression, but compiled at the first use of anything but ``pattern``.

        It has all methods and attributes of `re.Pattern`. It is no argument for functions of `re`: call its
        methods.
        """

        def __init__(self, pattern: T, flags: int) -> None:
            self.pattern = pattern
            """The expression itself, of which others may be composed."""
            self._given = (pattern, flags)

        def __getattr__(self, name: str) -> object:
            if name.startswith("__"):  # asked of every object that is copied
                raise AttributeError(name)
            # Compiling all at the start took a quarter of its CPU time. What is asked for is kept, so that a
            # second search costs what one of `re.Pattern` does.
            value = getattr(re.compile(*self._given), name)
            self.__dict__[name] = value
            return value

    def compile_late(pattern: T, flags: int = 0) -> LatePattern[T]:
        """Return ``pattern`` as `re.compile` does, but raise its errors (`re.error`) at its first use."""
        return LatePattern(pattern, flags)
