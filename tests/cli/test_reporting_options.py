"""`--notify`, `--otlp` and what goes with them: what is refused, which faces start, and that no value of
theirs is repeated."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from allaboard.configuration.launcher_context import LauncherContext
from allaboard.faces.notify.notify_settings import NotifySettings
from allaboard.formats.redaction import redact_command
from allaboard.formats.secret_names import SECRET_FLAGS
from allaboard.options.command_parser import build_parser
from allaboard.options.notify_options import MAX_URLS, choose_notifications
from allaboard.options.reporting import choose_reporters
from allaboard.options.run_options import add_arguments
from allaboard.options.script_boundary import note_late_options, split_at_script
from allaboard.options.secret_options import without_secret_values
from allaboard.options.telemetry_options import choose_telemetry
from allaboard.options.usage_error import UsageError

SECRET = "hunter2secret"


def parse(*words: str) -> argparse.Namespace:
    return build_parser("run", add_arguments).parse_checked_arguments(words)


@pytest.mark.parametrize(
    "words",
    [
        ["--notify", SECRET],
        ["--notify", f"json://a b{SECRET}"],
        ["--heartbeat-url", f"file:///{SECRET}"],
        ["--otlp", f"{SECRET}:4318"],
        ["--otlp", f"http://[{SECRET}"],
        *[["--notify", f"json://{SECRET}"] * (MAX_URLS + 1)],
    ],
)
def test_what_is_malformed_is_refused_and_not_repeated(words: list[str]) -> None:
    options = parse(*words)
    with pytest.raises(UsageError) as refused:
        choose_reporters(options, None, {})
    assert SECRET not in str(refused.value)


def test_the_urls_of_options_and_file(tmp_path: Path) -> None:
    pytest.importorskip("apprise", reason="apprise is not installed")
    file = tmp_path / "urls"
    file.write_text("# chat\n\n  slack://a/b/c  \n")
    options = parse("--notify", "json://x", "--notify-file", str(file), "--on-finding", "cat")
    expected = NotifySettings(urls=("json://x", "slack://a/b/c"), on_finding="cat")
    assert choose_notifications(options, True) == expected
    file.write_text("# nothing\n")
    with pytest.raises(UsageError, match="has no URL"):
        choose_notifications(parse("--notify-file", str(file)), True)
    with pytest.raises(UsageError, match="No such file"):
        choose_notifications(parse("--notify-file", f"{file}.no"), True)


def test_of_a_job_on_several_hosts_one_task_of_each_host_is_ready_to_tell() -> None:
    options = parse("--on-finding", "cat")

    def settings_of(rank: int, local_rank: str) -> list[object]:
        joined = LauncherContext("1", rank, "h:1", False)
        reporters = choose_reporters(options, joined, {"SLURM_LOCALID": local_rank})
        return [reporter.settings for reporter in reporters]

    silent = NotifySettings(on_finding="cat", only_if_taken_over=True)
    assert settings_of(0, "0") == [NotifySettings(on_finding="cat")]
    assert settings_of(4, "0") == [silent]
    assert settings_of(5, "1") == []


def test_telemetry_goes_to_a_url() -> None:
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http", reason="the exporter is not installed"
    )
    settings = choose_telemetry(parse("--otlp", "http://h:4318"))
    assert settings is not None and settings.url == "http://h:4318"


@pytest.mark.parametrize("option", sorted(SECRET_FLAGS))
def test_the_values_are_recorded_and_repeated_nowhere(
    option: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = ["-n", "2", option, SECRET, f"{option}={SECRET}", "--quiet"]
    assert SECRET not in " ".join(without_secret_values(typed))
    assert without_secret_values(typed)[-1] == "--quiet"
    assert SECRET not in " ".join(redact_command(["allaboard", "run", *typed]))  # as of another job
    assert without_secret_values([option, option, "-n"]) == (option, "(redacted)", "-n")
    parser = build_parser("run", add_arguments)
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("pass")
    note_late_options(parser, ["train.py", option, SECRET], 0, None)
    said = capsys.readouterr().err
    assert option in said and SECRET not in said
    for words in ([option, SECRET, "--no-such-option"], ["--nnodes", "2", option, SECRET]):
        with pytest.raises(UsageError) as refused:
            split_at_script(parser, [*words, "train.py"])
        assert SECRET not in str(refused.value)
    with pytest.raises(UsageError) as refused:  # misspelled, and corrected
        split_at_script(parser, [option[:-1], SECRET, "train.py"])
    assert option in str(refused.value) and SECRET not in str(refused.value)
