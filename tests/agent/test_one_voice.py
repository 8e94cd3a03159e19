"""Of several agents that a launcher starts on one host the first speaks."""

import pytest

from allaboard.agent.one_voice import first_here

TORCHRUN = {"TORCHELASTIC_RUN_ID": "none"}


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({}, True),
        ({"SLURM_LOCALID": "0"}, True),
        ({"SLURM_LOCALID": "3"}, False),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "1"}, False),
        ({"FLUX_TASK_LOCAL_ID": "1"}, False),
        ({"LOCAL_RANK": "1"}, True),  # by hand, in a terminal of its own
        ({"LOCAL_RANK": "1"} | TORCHRUN, False),
        ({"LOCAL_RANK": "0", "SLURM_LOCALID": "2"} | TORCHRUN, True),  # torchrun within a task
        ({"LOCAL_RANK": "", "SLURM_LOCALID": ""}, True),
    ],
)
def test_the_first_of_a_host_speaks(environment: dict[str, str], first: bool) -> None:
    assert first_here(environment) is first
