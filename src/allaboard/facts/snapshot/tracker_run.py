"""A run of an experiment tracker that the script has opened."""

from __future__ import annotations

import msgspec


class TrackerRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run of wandb, MLflow or trackio, as a process of the job has opened it."""

    tracker: str
    """Its package: wandb, mlflow, trackio."""
    id: str = ""
    """Its id; "" if it has none."""
    project: str = ""
    """Its project; in MLflow, the id of the experiment. "" for the tracker's default."""
    entity: str = ""
    """User or team that it belongs to, in wandb; "" for the default."""
    group: str = ""
    """Its group; "" for none."""
    name: str = ""
    """Its name; "" if it is too long to be passed on."""
    uri: str = ""
    """Where it is kept: MLflow's tracking server or store without its password, the Space of trackio."""
    offline: bool = False
    """True if it is kept on this host only."""
