"""Secrets do not leave the house, and what is none stays readable."""

from __future__ import annotations

import json
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allaboard.formats.redaction import (
    REDACTED,
    is_secret_name,
    redact_command,
    redact_passwords,
    redact_text,
    secrets_of,
)

SECRET = "s3cr3t-Value-42"
HOLDING = [
    f"WANDB_API_KEY={SECRET}",
    f"'MYSQL_PWD': '{SECRET}'",
    f"export HF_TOKEN='{SECRET}'",
    f"aws_secret_access_key = {SECRET}",
    f'{{"password": "{SECRET}", "rank": 1}}',
    f'{{"line": "{{\\"api_key\\": \\"{SECRET}\\"}}"}}',
    f"{{'DB_PASSWORD': '{SECRET}'}}",
    f"curl -H 'Authorization: Bearer {SECRET}' x",
    f"python train.py --wandb-token {SECRET} --lr 0.1",
    f"python train.py --api-key={SECRET}",
    f'- name: WANDB_API_KEY\n  value: "{SECRET}"',
    f'{{"name": "WANDB_API_KEY", "value": "{SECRET}"}}',
    f'"{{\\"name\\": \\"WANDB_API_KEY\\", \\"value\\": \\"{SECRET}\\"}}"',
    f"api_keys:\n  - first\n  - {SECRET}",
    f'--password "my {SECRET}"',
    f"['python', 'train.py', '--token', '{SECRET}']",
    f"proxy http://user:{SECRET}@proxy:3128",
    f"git clone https://{SECRET}@host/repo",
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
    f"DB_PASS={SECRET}",
    f"'pass': '{SECRET}'",
    f"SMTPPASS={SECRET}",
    f"mysql -u root -p{SECRET} jobs",
    f"['mysqldump', '-u', 'root', '-p{SECRET}']",
    f"sshpass -p {SECRET} ssh h1",
    f"docker login -u me -p {SECRET} registry:5000",
    f"['podman', 'login', '-p', '{SECRET}']",
    f"['curl', '-s', '-u', 'me:{SECRET}', 'http://h']",
    f'{{"password": {{"value": "{SECRET}", "of": "db"}}, "rank": 1}}',
    f'{{"line": "{{\\"password\\": {{\\"value\\": \\"{SECRET}\\"}}}}"}}',
    f'"api_key": {{\n  "value": "{SECRET}"\n}}',
    f"SLACK_WEBHOOK=https://example.org/{SECRET}",
    f"curl https://hooks.slack.com/services/T0/B0/{SECRET}",
    f'"https://discord.com/api/webhooks/42/{SECRET}"',
    f"AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET}==;x=1",
    f"Server=tcp:db;Uid=me;Pwd={SECRET};",
    f"ETCDCTL_USER=root:{SECRET}",
    f"etcdctl --user root:{SECRET} get --prefix x",
    f"curl -s -u 'me:{SECRET}' http://h",
    f"GET https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={SECRET}",
    f"https://a.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig={SECRET}%3D",
    f'{{"url": "https://a.blob.core.windows.net/c?sp=r\\u0026sig={SECRET}"}}',
    f"Authorization: Token {SECRET}",
    f"'Authorization': 'ApiKey {SECRET}'",
    f"Proxy-Authorization: Negotiate {SECRET}",
    f"Cookie: theme=dark; session={SECRET}",
    f"{{'password': b'{SECRET}'}}",
    f"'password': ['{SECRET}', '{SECRET}']",
    f'password="{SECRET} and the line is cut off',
    f"password: |\n  {SECRET}\nrank: 1",
    f"access_token%3D{SECRET}",
    f"SLURM_JWT={SECRET}",
    f"machine h1 login me password {SECRET}",
    f"postgres://me:at@{SECRET}@h1/db",
    f"etcd://root:x/{SECRET}@h1:2379",
    f"mongodb://me:{SECRET}@h1:27017,me:{SECRET}@h2:27017/db",
    f"--rdzv-endpoint root:{SECRET}@h1:2379",
    f"export JAX_COORDINATOR_ADDRESS=root:{SECRET}@h1",
    "ya29." + "a1B2" * 9,
    "ghp_" + "a1B2" * 9,
    "token is hf_" + "abcdEFGH" * 4,
    "AKIA" + "ABCDEFGH12345678",
]


@pytest.mark.parametrize("text", HOLDING)
def test_a_secret_is_gone(text: str) -> None:
    said = redact_text(text)
    assert SECRET not in said and REDACTED in said
    assert not any(part in said for part in ("a1B2a1B2", "abcdEFGH", "ABCDEFGH1234"))


@pytest.mark.parametrize(
    "text",
    [
        "torch.distributed.DistStoreError: wait timeout after 10000ms, keys: /default_pg/0//cpu//0/0",
        "KeyError: 'loss'",
        "tokens=1024 num_tokens: 5 tokenizer=bert max_tokens=8",
        '{"key":4294967297,"rank":0}',
        "MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 RANK=0",
        "tcp://10.0.0.1:29500 file:///shared/rendezvous",
        "author: someone, authentic: yes",
        "PWD=/work OLDPWD=/home/someone",
        "bypass=yes compass: north, passes: two, passed = all",
        "docker run -p 80:80 -u 1000:1000 x; python -p 3 login",
        '{"key": {"rank": 1, "step": 40}, "more": true}',
        "mysql -p jobs; python train.py -parallel",
        "mysql_loader.py -patience 4",
        "step 12 loss 0.3 keyboard interrupt",
        "docker run --user 1000:1000 image; user: someone",
        "user: someone at h1:29500",
        '{"signature": {"op": "all_reduce"}, "sig": 15, "foreignKey": "id"}',
        "killed by sig=SIGTERM; inspect.signature=(x, y)",
        "job;pwd; cd /work",
        "author's authority; authorized_users=3, authors: three",
        "http://h1:8080/metrics/a@b tcp://10.0.0.1:29500, rank 1@h2",
        "ssh://h1:22/work/x@y; sent to me@example.org:25",
        '{"key": [1, 2, 3], "jwt": null}',
        "login me; the password is wrong",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


KEY = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDbZ" + "x9Kq" * 3] * 20)
HEAD, TAIL = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}\n{KEY}\n{TAIL}",
        f"{HEAD}\n{KEY}",
        f"{HEAD}\r\n" + KEY.replace("\n", "\r\n"),
        f"{HEAD}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n{KEY}",
        HEAD + "\\n" + KEY.replace("\n", "\\n"),
        f"{HEAD} " + KEY.replace("\n", " "),
        "\n".join(f"3: {line}" for line in [HEAD, *KEY.split("\n")]),
        "\n".join(f"2026-01-02 03:04:05,678 INFO {n}" for n in [HEAD, *KEY.split("\n")]),
        f"{HEAD}\n{KEY}\n{HEAD}\n{KEY}\n{TAIL}",
    ],
)
def test_a_private_key_is_gone_and_what_follows_stays(text: str) -> None:
    said = redact_text(f"before\n{text}\nRuntimeError: the cause is here\nafter it\n")
    assert "MIIE" not in said and "x9Kq" not in said
    assert said.startswith("before\n") and said.endswith(
        "\nRuntimeError: the cause is here\nafter it\n"
    )


def test_who_only_mentions_a_private_key_takes_nothing_with_it() -> None:
    lines = [
        f"no {HEAD} in /etc/key, skipped",
        "Traceback (most recent call last):",
        "KeyError: 'loss'",
    ]
    assert redact_text("\n".join(lines)) == "\n".join(
        [lines[0].replace(HEAD, REDACTED), *lines[1:]]
    )
    far = "\n".join([f"wants {HEAD}", *["step 1 loss 0.5"] * 2000, f"wants {TAIL}"])
    assert redact_text(far).count("step 1 loss 0.5") == 2000


def test_known_values_are_taken_out_wherever_they_stand() -> None:
    known = secrets_of({"MY_TOKEN": SECRET, "PATH": "/usr/bin", "SHORT_KEY": "abc", "RANK": "0"})
    assert known == [SECRET]
    assert redact_text(f"connecting as {SECRET}/x", known) == f"connecting as {REDACTED}/x"


def test_arguments() -> None:
    words = ["python", "train.py", "--token", SECRET, "--lr", "0.1", "--wandb_key=" + SECRET]
    assert redact_command(words) == ["python", "train.py", "--token", REDACTED, "--lr", "0.1",
                              "--wandb_key=" + REDACTED]  # fmt: skip
    assert redact_command(["--token", "--verbose", "x"]) == ["--token", "--verbose", "x"]


def test_no_text_takes_long_that_repeats_what_secrets_begin_with() -> None:
    for part in ("password", "http://", "token=", '"token":[', "a@", "login "):
        began = process_time()
        redact_text(part * (100_000 // len(part)))
        assert process_time() - began < 10, part  # by the square of the length it would be minutes


def test_json_stays_json() -> None:
    entry = {"kind": "view", "key": 12, "token": None, "api_key": SECRET, "notes": ["a", "b"]}
    back = json.loads(redact_text(json.dumps(entry)))
    assert back == {**entry, "api_key": REDACTED}
    listed = {"passwords": [SECRET, SECRET], "line": json.dumps({"password": [SECRET]})}
    told = json.loads(redact_text(json.dumps(listed)))
    assert told["passwords"] == [REDACTED] and json.loads(told["line"]) == {"password": [REDACTED]}


def test_names() -> None:
    for name in ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "--api-key", "COOKIE"):
        assert is_secret_name(name), name
    for name in ("RANK", "MASTER_ADDR", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "KEYBOARD"):
        assert not is_secret_name(name), name


@given(st.text(max_size=300))
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(redact_text(text), str)


def test_a_password_in_one_word_with_its_flag_is_gone_from_a_command() -> None:
    said = redact_command(["/usr/bin/mysql", "-u", "root", f"-p{SECRET}", "jobs"])
    assert said == ["/usr/bin/mysql", "-u", "root", f"-p{REDACTED}", "jobs"]
    assert redact_command(["python", "-patience"]) == ["python", "-patience"]


@pytest.mark.parametrize(
    "words",
    [
        ["docker", "login", "-u", "me", "-p", SECRET],
        ["/usr/bin/podman", "login", f"-p={SECRET}"],
        ["sshpass", "-p", SECRET, "ssh", "h1"],
        ["curl", "-u", f"me:{SECRET}", "http://h"],
        ["curl", f"-ume:{SECRET}", "http://h"],
        ["sh", "-c", f"docker login -p {SECRET}"],
    ],
)
def test_words_of_a_command(words: list[str]) -> None:
    said = redact_command(words)
    assert len(said) == len(words) and SECRET not in str(said) and REDACTED in str(said)


@pytest.mark.parametrize(
    "words",
    [
        ["ssh", "-p", "22", "h1"],
        ["docker", "run", "-p", "80:80", "-u", "1000:1000", "image"],
        ["curl", "-u", "me", "http://h:80/x"],
    ],
)
def test_words_that_are_no_secret(words: list[str]) -> None:
    assert redact_command(words) == words


@pytest.mark.parametrize(
    "text",
    [
        f"JAX_COORDINATOR_ADDRESS=root:{SECRET}@h1:1234",
        f"etcd://root:{SECRET}@h1:2379",
        f"\x1b[1mcannot reach https://me:{SECRET}@h1/x\x1b[0m",
        f'{{"summary": "root:{SECRET}@h1:2379 is wrong"}}',
        f"RuntimeError: h1 refused: bad login password={SECRET} [train.py:3]",
        f"at h1: train.py --db-password={SECRET} --epochs=3",
    ],
)
def test_what_is_shown_has_no_password_in_an_address(text: str) -> None:
    said = redact_passwords(text)
    assert SECRET not in said and REDACTED in said and "h1" in said


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'label_17' [/home/u/train.py:18 in train]",
        "fix: allaboard run --secret-file /etc/secret --tls-key=/etc/key.pem train.py",
        "JAX_COORDINATOR_ADDRESS=h1:1234 tcp://10.0.0.1:29500",
        "password: see the wiki",
        "--secret-file=/etc/secret max_token=512 --token=/run/token",
    ],
)
def test_what_is_shown_keeps_what_is_needed(text: str) -> None:
    assert redact_passwords(text) == text
