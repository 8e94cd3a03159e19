"""What a signal handler of the program raises while a hook runs is the program's, no error of the hook."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any


def reraise_from_handler(error: BaseException) -> None:
    """Raise ``error`` again if a signal handler raised it, such as one that limits a time by ``SIGALRM``, or
    PyTorch's of a dead DataLoader worker (``SIGCHLD``). Else return: the hook deals with its own errors.

    Python runs handlers between any two bytecodes of the main thread, so also within a hook, see
    docs.python.org/3/library/signal.html#execution-of-python-signal-handlers.
    """
    handlers, traceback = _handlers(), error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            raise error
        traceback = traceback.tb_next


def _handlers() -> frozenset[CodeType]:
    """Return the code of all signal handlers in Python that are set now."""
    import signal  # loaded from a file, and hardly ever needed

    codes = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while hasattr(handler, "func"):  # functools.partial
            handler = handler.func
        if not hasattr(handler, "__code__") and callable(handler):
            handler = getattr(handler, "__func__", type(handler).__call__)
        code = getattr(handler, "__code__", None)
        if code is not None:
            codes.add(code)
    return frozenset(codes)
