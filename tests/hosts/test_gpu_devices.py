"""How the GPUs of a host are shared among its workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.hosts.gpu.gpu_devices import count_visible_gpus, gpu_share_of_worker

TABLE = [
    # what the environment lists (None: nothing), GPUs of the driver, workers, what each worker gets
    (None, 0, 2, [None, None]),
    (None, 1, 1, [None]),
    (None, 2, 2, ["0", "1"]),
    (None, 4, 2, ["0,1", "2,3"]),
    (None, 3, 2, ["0", "1"]),
    (None, 1, 3, ["0", "0", "0"]),
    (None, 2, 3, ["0", "1", "0"]),
    ("4,7", 8, 2, ["4", "7"]),
    (" 4, 7 ", 8, 2, ["4", "7"]),
    ("GPU-8932f937,GPU-46d4", 8, 2, ["GPU-8932f937", "GPU-46d4"]),
    ("", 8, 2, [None, None]),
    ("-1", 8, 2, [None, None]),
    ("5,-1,6", 8, 2, ["5", "5"]),
    ("5,", 8, 2, ["5", "5"]),
]


@pytest.mark.parametrize(("listed", "driver", "workers", "expected"), TABLE)
def test_a_share(
    tmp_path: Path, listed: str | None, driver: int, workers: int, expected: list[str | None]
) -> None:
    for number in range(driver):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
    environment = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    assert [
        gpu_share_of_worker(environment, i, workers, tmp_path) for i in range(workers)
    ] == expected


def test_a_host_without_the_driver_has_none(tmp_path: Path) -> None:
    assert count_visible_gpus({}, tmp_path / "absent") == 0
