"""What is reported of a run to Prometheus, and where."""

from __future__ import annotations

import msgspec


class MetricsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is reported, and where."""

    run_dir: str = ""
    """The run folder."""
    host: str = ""
    """Address to listen at."""
    port: int = -1
    """Port to listen at; 0 for a free one, -1 for none."""
    file: str = ""
    """File to write; "" for none."""
