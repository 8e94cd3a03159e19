"""Xid errors of the GPUs as the driver reports them to NVML, while they happen.

Functions and constants: the NVML API Reference, "Event Handling Methods". A GPU that reports no such events,
as parts of one (MIG) do, is left out.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

XID_CRITICAL_ERROR = 0x8
"""nvmlEventTypeXidCriticalError."""
MAX_NUMBERS = 16
"""Different numbers that are kept of one GPU."""
PAUSE_S = 0.05
"""Rest after an event: a GPU that fails may report thousands a second."""


class XidEvents:
    """Collects the events of the GPUs with these handles, from now on.

    ``nvml`` is the module of the library, whose error of its own is ``NVMLError``.
    """

    def __init__(self, nvml: Any, handles: list[Any]) -> None:
        self._nvml = nvml
        self._numbers: dict[int, list[int]] = {}
        self._events: Any = None
        try:
            self._events = nvml.nvmlEventSetCreate()
        except (nvml.NVMLError, AttributeError):
            return
        for handle in handles:
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlDeviceRegisterEvents(handle, XID_CRITICAL_ERROR, self._events)

    def numbers_of(self, index: int) -> tuple[int, ...]:
        """Return the numbers that a GPU has reported, each once, the first one first."""
        return tuple(self._numbers.get(index, ()))

    def wait_for_news(self, timeout_s: float) -> None:
        """Return as soon as a GPU reports a number that it had not, at the latest after ``timeout_s``."""
        end_at = time.monotonic() + timeout_s
        while (left_s := end_at - time.monotonic()) > 0:
            if self._events is None:
                time.sleep(left_s)
                return
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._events, int(left_s * 1000) + 1)
            except self._nvml.NVMLError_Timeout:
                return
            except self._nvml.NVMLError:  # one GPU is gone, and no further event comes
                self._events = None
                continue
            if self._is_new(event):
                return
            time.sleep(PAUSE_S)

    def _is_new(self, event: Any) -> bool:
        try:
            index = self._nvml.nvmlDeviceGetIndex(event.device)
        except self._nvml.NVMLError:
            return False
        if event.eventType != XID_CRITICAL_ERROR:
            return False
        numbers = self._numbers.setdefault(index, [])
        if event.eventData in numbers or len(numbers) >= MAX_NUMBERS:
            return False
        numbers.append(event.eventData)
        return True
