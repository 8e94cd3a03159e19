"""`--web` on the command line: its value, and what is said where no page can be served."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from allaboard.cli import watch
from allaboard.options.command_parser import build_parser
from allaboard.options.option_values import DEFAULT_PAGE_PORT
from allaboard.options.run_options import add_arguments
from allaboard.options.script_boundary import note_late_options, split_at_script
from allaboard.options.usage_error import UsageError
from allaboard.options.web_options import open_page_port


@pytest.mark.parametrize(
    ("words", "value", "script"),
    [
        (["train.py"], None, ["train.py"]),
        (["--web", "train.py", "--web", "9"], "", ["train.py", "--web", "9"]),
        (["--web", "8800", "train.py"], "8800", ["train.py"]),
        (["--web=8800", "-n", "2", "train.py"], "8800", ["train.py"]),
        (["--web=0.0.0.0:8800", "train.py"], "0.0.0.0:8800", ["train.py"]),
        (["--web", "-n", "2", "train.py"], "", ["train.py"]),
        (["--web", "--", "torchrun", "--web"], "", ["torchrun", "--web"]),
        (["-n", "2", "--web", "-m", "pkg.train"], "", []),
    ],
)
def test_what_follows_is_the_port_only_if_it_is_a_number(
    words: list[str], value: str | None, script: list[str]
) -> None:
    parser = build_parser("run", add_arguments)
    end, command_line, _ = split_at_script(parser, words)
    options = parser.parse_checked_arguments(words[:end])
    assert options.web == value
    assert command_line == script


def test_an_option_behind_the_script_is_noted_with_its_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("pass")
    parser = build_parser("run", add_arguments)
    note_late_options(parser, ["train.py", "--web", "8800", "data"], 0, None)
    assert "allaboard run --web 8800 train.py" in capsys.readouterr().err
    note_late_options(parser, ["train.py", "--web", "data"], 0, None)
    assert "allaboard run --web train.py" in capsys.readouterr().err


def test_of_watch_the_run_is_no_port() -> None:
    parser = build_parser("watch", watch.add_arguments)
    for words in (["--web", "runs/j"], ["runs/j", "--web"], ["--web", "8800", "runs/j"]):
        options = parser.parse_arguments(words)
        assert options.run == "runs/j"
        assert options.web == ("8800" if "8800" in words else "")
    with pytest.raises(UsageError, match="leave out"):
        watch.main(["--web", "--once"])


def test_a_port_that_is_taken_is_named_and_the_default_gives_way() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {number} is taken on 127.0.0.1.*ss -ltnp"):
            open_page_port(str(number), None)
    first = open_page_port("", None)
    second = open_page_port("", None)
    assert second.listener.getsockname()[1] not in (
        DEFAULT_PAGE_PORT,
        first.listener.getsockname()[1],
    )
    assert first.token != second.token and first.url.endswith(first.token)
    first.listener.close()
    second.listener.close()


@pytest.mark.parametrize(
    "text", ["x", "127.0.0.1:", ":80", "99999", "127.0.0.1:99999", "nowhere:x", "-1"]
)
def test_what_is_no_port_is_said_so(text: str) -> None:
    with pytest.raises(UsageError, match="expected a port or HOST:PORT"):
        open_page_port(text, None)


def test_a_foreign_address_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1:8701"):
        open_page_port("192.0.2.1:8701", None)


def test_without_aiohttp_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allaboard.options.web_options.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'allaboard\[web\]'"):
        open_page_port("", None)


def test_nothing_starts_if_the_page_cannot_be_served(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('ran', 'w')")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        words = ["run", "--web", str(number), "-n", "1", "train.py"]
        done = subprocess.run(
            [sys.executable, "-m", "allaboard", *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2 and "is taken" in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "ran").exists()
    assert not (tmp_path / ".allaboard").exists()
