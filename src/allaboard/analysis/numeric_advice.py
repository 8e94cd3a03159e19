"""What to do about losses that are not finite, for every rule and reader that finds them."""

from __future__ import annotations

NUMERIC_CHECKS = {
    "torch": "torch.autograd.set_detect_anomaly(True)",
    "tensorflow": "tf.debugging.enable_check_numerics()",
    "jax": 'jax.config.update("jax_debug_nans", True)',
}
"""What makes a framework raise where a value first is not finite, by the name of the framework."""
CHECK_BATCH = (
    "look at the batch of that step (an empty shard, a label out of range, a logarithm of zero) and at the "
    "learning rate"
)


def advise_numeric_check(framework: str) -> str:
    """Return "torch.autograd.set_detect_anomaly(True) names the operation".

    All of them are offered where the framework is not known.
    """
    checks = tuple(NUMERIC_CHECKS.values())
    known = NUMERIC_CHECKS.get(framework, f"{', '.join(checks[:-1])} or {checks[-1]}")
    return f"{known} names the operation"
