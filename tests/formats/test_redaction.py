"""Secrets do not leave the house, and what is none stays readable."""

from __future__ import annotations

import json
from collections import Counter
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allaboard.formats.redacted_records import redact_document
from allaboard.formats.redaction import (
    ADDRESSES,
    FORMS,
    NAMED,
    redact_command,
    redact_text,
    secrets_of,
)
from allaboard.formats.secret_hints import may_hold_secret, redact
from allaboard.formats.secret_names import REDACTED, is_secret_name
from cost_growth import assert_growth

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


FORM = "aB3dE5gH7jK9mN1pQ3sT5vW7"
"""Characters without order, as tokens have."""
HEX = "0123456789abcdef0123456789abcdef01234567"
AWS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEK1"
PLANTED = [
    f"DB_PW={SECRET}",
    f"train.py --pw {SECRET}",
    f"train.py --pw={SECRET}",
    f"train.py --password {SECRET}",
    f"train.py --pwd {SECRET} --lr 0.1",
    f"redis-cli -h h1 -a {SECRET}",
    f"mysql -u root -p {SECRET} jobs",
    f"mongosh --host h1 -u me -p {SECRET}",
    f"ldapsearch -x -w {SECRET}",
    f"mosquitto_sub -t x -P '{SECRET}'",
    f"the passphrase is {SECRET}.",
    f"using password {SECRET}, as told",
    f"password: {SECRET}",
    f"password was '{SECRET}'",
    f"the API key is {SECRET}",
    f"AWS Secret Access Key: {AWS_KEY}",
    f"got {AWS_KEY} from the vault",
    f"wandb: key {HEX}",
    f"wandb: Paste an API key from your profile and hit enter: {HEX}",
    f"wandb login --relogin {HEX}",
    f"npm_{FORM}{FORM[:12]}",
    f"sk_live_{FORM}",
    f"rk_test_{FORM}",
    f"sk-{FORM}",
    f"sk-proj-{FORM}-{FORM}",
    f"sk-ant-api03-{FORM}_{FORM}",
    f"pypi-AgEIcHlwaS5vcmc{FORM}",
    f"dckr_pat_{FORM}",
    f"xapp-1-A0B1C2D3-{FORM}",
    f"xoxb-123456789012-{FORM}",
    f"hvs.{FORM}",
    f"r8_{FORM}",
    f"nvapi-{FORM}",
    f"hf_{FORM}",
    f"github_pat_{FORM}",
    f"glpat-{FORM}",
    f"token='{FORM}",
    f"token='{FORM}' and more",
    f"ValueError: bad token='tok_{FORM} [train.py:3]",
    f'RuntimeError: login(token="tok_{FORM}, 3)',
    f"Authorization: Bearer tok_{FORM}",
    f"Bearer {FORM}",
    f"openssl pkcs12 -passin pass:{SECRET}",
    f"skopeo copy --src-creds me:{SECRET} a b",
    f"self.token: str = '{FORM}'",
]


@pytest.mark.parametrize("text", PLANTED)
def test_a_planted_secret_is_gone(text: str) -> None:
    redacted = redact_text(text)
    assert REDACTED in redacted
    assert not any(part in redacted for part in (SECRET, FORM, HEX, AWS_KEY))
    assert redact_text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        f"commit {HEX}",
        f"wandb: run at commit {HEX}",
        f"HEAD is now at {HEX[:12]} wandb key removed",
        "run 550e8400-e29b-41d4-a716-446655440000 resumed",
        "checkpoint-00012000-step=400-loss=0.31.ckpt written",
        "saved sk-learn-contrib-estimators to sk-model-epoch-00012-step-400",
        "/home/user1/Projects2/Distributed3/Train4x: 40 characters",
        "org/apache/Hadoop2Distributed/FileSystem",
        "npm_config_cache=/root/.npm hf_transformers hf_hub_download_progress r8_batch",
        "pypi-server-requirements-file xoxb hvs.example nvapi-",
        "python -p 3; ssh -p 2222 h1; psql -p 5432; docker run -p 80:80 x; mpirun -a 4",
        "mysql -p jobs",
        "redis-cli -p 6379",
        "the password is wrong; password required; password authentication failed for user1",
        "passphrase is case-sensitive; password for admin2 expired after 30.5s",
        "unexpected token 'a1' at position 12; token is too long: 4096tokens",
        "Basic training of ResNet50; Bearer tokens are used",
        "password: see the wiki, page 12",
        "token = get_token(args.path); key=self.key; token = os.environ['HF_TOKEN']",
        "--secret-file job.secret --tls-key /etc/tls/key.pem --token-file=/run/token",
        "password=${DB_PASSWORD} token=$HF_TOKEN password=*****",
        "store key: default_pg/0//cpu//0/0 store_key=rank:3 cache_key=abc12",
        "key=rank0/shard_12",
        "PWD=/scratch/user/job_12 OLDPWD=/home/u",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskE",
        "h1:29500 rank 1@h2 GPU-8a1b2c3d-4e5f-6789-abcd-ef0123456789",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert redact_text(text) == text


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


@pytest.mark.parametrize("text", [*HOLDING, *PLANTED])
def test_what_holds_a_secret_is_not_passed_over(text: str) -> None:
    assert may_hold_secret(text.encode()) and may_hold_secret(json.dumps({"text": text}).encode())


def test_a_record_is_redacted_in_all_of_its_texts() -> None:
    record = {
        "kind": "start",
        "command": ["train.py", "--password", SECRET, "--epochs", "3"],
        "options": ("-n", "2", "--env", f"DB_PW={SECRET}"),
        "notes": [f"cannot reach https://me:{SECRET}@h1/x", "loss 0.3"],
        "variables": {"HF_TOKEN": SECRET, "RANK": "0"},
    }
    redacted = redact(record)
    assert SECRET not in str(redacted)
    assert redacted["command"] == ["train.py", "--password", REDACTED, "--epochs", "3"]
    assert redacted["variables"] == {"HF_TOKEN": REDACTED, "RANK": "0"}
    plain = {"command": ["train.py", "--epochs", "3"], "rank": 0}
    assert redact(plain) is plain


def test_kinds_are_counted() -> None:
    counts: Counter[str] = Counter()
    redact_text(f"DB_PW={SECRET} token={SECRET}; http://a:{SECRET}@h1 ghp_{FORM}", (), counts)
    assert {kind: n for kind, n in counts.items() if n} == {NAMED: 2, ADDRESSES: 1, FORMS: 1}


HOSTILE_PARTS = (
    *("password", "http://", "token=", '"token":[', "a@", "login ", "mysql ", "docker login "),
    *("curl ", "password={", "password={a{", "user:", "Bearer ", "sk-", "a.b-", "password is "),
    *("wandb: key ", "cookie: ", "token='", 'token=\\"', '"--token", ', "sshpass -p ", "mysql -"),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "eyJaaaaaaaa.",
        "[",
        "&sig=",
        "name: token value: ",
        "x",
        "aB3",
    ),
)


@pytest.mark.parametrize("part", HOSTILE_PARTS)
def test_the_time_for_a_line_grows_with_its_length(part: str) -> None:
    """It is compared with itself, since machines differ: four times the length takes four times as long, by
    the square it would be sixteen. A megabyte is a matter of seconds at most."""

    def seconds_for(length: int) -> float:
        line = part * (length // len(part))
        began = process_time()
        redact_text(line)
        return process_time() - began

    assert_growth(seconds_for, 250_000, 1_000_000, at_most=8)
    assert seconds_for(1_000_000) < 5.0


@given(st.lists(st.sampled_from([*HOSTILE_PARTS, *" \n\t\"'{}[]:=,@/"]), max_size=40))
def test_json_of_any_text_stays_json(parts: list[str]) -> None:
    entry = {"text": "".join(parts), "rank": 0}
    for text in (json.dumps(entry), json.dumps(entry) + "\n" + json.dumps(entry)):
        for line in redact_document(text).splitlines() if "\n" in text else [redact_document(text)]:
            assert json.loads(line)["rank"] == 0


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
    said = redact_text(text)
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
    assert redact_text(text) == text
