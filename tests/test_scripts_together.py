"""Scripts read together (constants that they import from each other), notebooks, standard input, folders."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from allaboard.check.collect import from_files
from allaboard.check.folder_walk import expand_folders
from allaboard.check.run_rules import judge_configuration
from allaboard.facts import Finding


def judge(*paths: Path) -> list[Finding]:
    files, walked = expand_folders([str(p) for p in paths])
    return judge_configuration(from_files(files, walked=walked))


def places(findings: list[Finding]) -> list[str]:
    return [f"{f.rule} {Path(f.where.file).name}:{f.where.line}" for f in findings if f.where]


def write(folder: Path, **texts: str) -> list[Path]:
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        paths.append(path)
    return paths


def notebook(path: Path, *cells: str, compact: bool = False) -> Path:
    """A notebook with these code cells, as Jupyter writes it."""

    def source(text: str) -> Any:
        return text if compact else text.splitlines(keepends=True)

    text = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "dist.barrier()"]}]
    code = [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source(c),
        }
        for c in cells
    ]
    content = {"cells": [*text, *code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content, indent=1))
    return path


IMPORTS = "from settings import RANK, SIZE\nimport torch.distributed as dist\n"
INIT = 'dist.init_process_group("gloo", rank=RANK, world_size=SIZE)\n'
SETTINGS = "RANK = 2\nSIZE = 2\nPLACE = 'tcp://10.1.0.7:29500'\n"


def test_a_constant_is_followed_into_a_file_that_was_given(tmp_path: Path) -> None:
    paths = write(tmp_path, train=IMPORTS + INIT, settings=SETTINGS)
    assert places(judge(*paths)) == ["CFG013 train.py:3"]
    assert judge(paths[0]) == []


@pytest.mark.parametrize("settings", ["RANK: int = 2; SIZE = 2\n", "import os; RANK=2\nSIZE\t=2\n"])
def test_a_constant_is_found_however_it_is_spaced(tmp_path: Path, settings: str) -> None:
    paths = write(tmp_path, train=IMPORTS + INIT, settings=settings)
    assert places(judge(*paths)) == ["CFG013 train.py:3"]


def test_a_constant_of_a_module_that_is_imported_whole(tmp_path: Path) -> None:
    init = 'dist.init_process_group("gloo", init_method=cfg.PLACE, world_size=2, rank=r)\n'
    train = "import settings as cfg\nimport torch.distributed as dist\n"
    train += "r = int(os.environ['RANK'])\n" + init
    paths = write(tmp_path, train=train, settings=SETTINGS)
    assert places(judge(*paths)) == ["CODE029 train.py:4"]


def test_a_constant_in_a_package_of_a_folder(tmp_path: Path) -> None:
    package = tmp_path / "job"
    package.mkdir()
    write(package, __init__="", settings=SETTINGS)
    write(
        package, train="from .settings import RANK, SIZE\nimport torch.distributed as dist\n" + INIT
    )
    write(tmp_path, main=IMPORTS.replace("settings", "job.settings") + INIT)
    assert places(judge(tmp_path)) == ["CFG013 train.py:3", "CFG013 main.py:3"]


@pytest.mark.parametrize(
    "settings",
    [
        "import os\nRANK = int(os.environ['RANK'])\nSIZE = 2\n",
        "RANK = 0\nSIZE = 2\nRANK += 1\n",
        "if first():\n    RANK = 2\nelse:\n    RANK = 1\nSIZE = 2\n",
        "def settings(:\n",
    ],
    ids=["from outside", "changed", "in branches", "does not parse"],
)
def test_what_is_no_constant_is_not_followed(tmp_path: Path, settings: str) -> None:
    paths = write(tmp_path, train=IMPORTS + INIT, settings=settings)
    assert [p for p in places(judge(*paths)) if "train" in p] == []


def test_of_two_modules_of_one_name_the_nearer_counts(tmp_path: Path) -> None:
    for name, rank in (("one", 2), ("two", 1)):
        (tmp_path / name).mkdir()
        settings = SETTINGS.replace("RANK = 2", f"RANK = {rank}")
        write(tmp_path / name, train=IMPORTS + INIT, settings=settings)
    findings = judge(tmp_path)
    assert [p for p in places(findings) if "CFG013" in p] == ["CFG013 train.py:3"]
    assert all("/two/" not in f.where.file for f in findings if f.where and f.rule == "CFG013")


def test_a_script_for_each_member_is_fine(tmp_path: Path) -> None:
    join = "import jax\njax.distributed.initialize('node0:1234', num_processes=2, process_id=0)\n"
    first, second = write(tmp_path, first=join, second=join.replace("id=0", "id=1"))
    assert judge(first, second) == []
    assert places(judge(first)) == ["CODE016 first.py:2"]
    assert judge(tmp_path) == []


BARRIER = ["import torch.distributed as dist\ndist.init_process_group('gloo')\n", "%matplotlib inline\n",
           "rank = dist.get_rank()\nif rank == 0:\n    dist.barrier()\n"]  # fmt: skip


def test_a_notebook_is_one_script_with_lines_of_its_file(tmp_path: Path) -> None:
    path = notebook(tmp_path / "train.ipynb", *BARRIER)
    (finding,) = judge(tmp_path)
    assert finding.rule == "CODE010"
    assert finding.where is not None
    assert "dist.barrier()" in path.read_text().splitlines()[finding.where.line - 1]


def test_a_notebook_whose_cells_are_one_string_each(tmp_path: Path) -> None:
    (finding,) = judge(notebook(tmp_path / "train.ipynb", *BARRIER, compact=True))
    assert (finding.rule, finding.evidence[0].observed) == ("CODE010", "dist.barrier()")


def test_a_script_that_a_cell_writes_is_judged_by_itself(tmp_path: Path) -> None:
    written = "%%writefile train.py\n" + "".join(BARRIER[:1] + BARRIER[2:])
    healthy = "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    (finding,) = judge(notebook(tmp_path / "nb.ipynb", healthy, written, "!torchrun train.py"))
    assert finding.rule == "CODE010"


def test_cells_of_other_languages_and_torn_ones_are_left_out(tmp_path: Path) -> None:
    cells = [
        "%%bash\nif rank; then dist.barrier(); fi",
        "x = (\n",
        "?dist",
        "files = !ls\nprint(files)",
    ]
    assert judge(notebook(tmp_path / "nb.ipynb", *cells)) == []


def test_a_notebook_that_is_no_json_is_told(tmp_path: Path) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_text('{"cells": [,], "nbformat": 4}')
    (finding,) = judge(path)
    assert finding.rule == "CFG001"


@pytest.mark.parametrize("kind", ["script", "notebook"])
def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path = notebook(tmp_path / "nb.ipynb", *BARRIER)
    text = path.read_text() if kind == "notebook" else "".join(BARRIER[:1] + BARRIER[2:])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    (finding,) = judge_configuration(from_files(["-"]))
    assert finding.rule == "CODE010"
    assert finding.where is not None
    assert finding.where.file == "<stdin>"


PIECE = "if rank == 0:\n        save()\n        dist.barrier()\n    else:\n        pass\n"


def test_a_piece_on_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PIECE.encode())))
    assert places(judge_configuration(from_files(["-"]))) == [
        "CODE010 <stdin>:3",
        "CFG001 <stdin>:4",
    ]


def test_a_piece_in_a_folder_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "piece.py").write_text(PIECE)
    files, walked = expand_folders([str(tmp_path)])
    gathered = from_files(files, walked=walked)
    (reason,) = gathered.skipped.values()
    assert reason.startswith("cannot be read as Python")
    assert judge_configuration(gathered) == []


LEARN = "import tensorflow as tf\nconfig = tf.contrib.learn.RunConfig()\n"
CLUSTER = {
    "cluster": {"master": ["a:2222"], "ps": ["b:2222"], "worker": ["c:2222"]},
    "task": {"type": "worker", "index": 0},
}


def test_tf_config_for_contrib_learn(tmp_path: Path) -> None:
    write(tmp_path, model=LEARN)
    config = tmp_path / "tf_config.json"
    config.write_text(json.dumps(CLUSTER))
    assert places(judge(tmp_path)) == ["CFG052 tf_config.json:1"]
    config.write_text(json.dumps(CLUSTER | {"environment": "cloud"}))
    assert judge(tmp_path) == []
    write(tmp_path, model=LEARN.replace("contrib.learn", "estimator"))
    assert places(judge(tmp_path)) == ["CFG005 tf_config.json:1"]
