"""Which variables of a process are compared between hosts and shown, and which stay with it."""

from __future__ import annotations

import pytest

from allaboard.hosts.fingerprint import relevant_variables


@pytest.mark.parametrize(
    "name",
    ["TF_PASS", "TORCH_DB_PASS", "NCCL_PWD", "JAX_JWT", "TF_COOKIE", "TORCH_WEBHOOK_URL",
     "TF_PASSPHRASE", "TF_CONNECTION_STRING", "NCCL_AUTH", "TF_API_KEY", "GRPC_TOKEN"],
)  # fmt: skip
def test_a_secret_stays_with_its_process(name: str) -> None:
    assert relevant_variables({name: "s3cr3t", "NCCL_DEBUG": "INFO"}) == {"NCCL_DEBUG": "INFO"}


def test_what_only_sounds_alike_is_shown() -> None:
    known = {"TF_BYPASS_CACHE": "1", "XLA_DISABLE_HLO_PASSES": "algsimp"}
    assert relevant_variables(known) == known
