"""Jobs of which some hosts start the script without allaboard."""

from __future__ import annotations

from multihost_drills.contract import HostDrill

DRILLS = {
    "plain-first-jax": HostDrill(
        title=(
            "The leader's host runs the script without allaboard: training starts, and nothing is "
            "wrong"
        ),
        framework="jax",
        expects="",
        plain=(0,),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="as with torch",
    ),
    "plain-first-tensorflow": HostDrill(
        title=(
            "The leader's host runs the script without allaboard: training starts, and nothing is "
            "wrong"
        ),
        framework="tensorflow",
        expects="",
        plain=(0,),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="as with torch; TensorFlow takes 15 s to import",
    ),
    "plain-first-torch": HostDrill(
        title=(
            "The leader's host runs the script without allaboard: training starts, and nothing is "
            "wrong"
        ),
        framework="torch",
        expects="",
        hosts=3,
        plain=(0,),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "plain-other-jax": HostDrill(
        title="One host runs the script without allaboard: training starts, and nothing is wrong",
        framework="jax",
        expects="",
        plain=(2,),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="as with torch",
    ),
    "plain-other-tensorflow": HostDrill(
        title="One host runs the script without allaboard: training starts, and nothing is wrong",
        framework="tensorflow",
        expects="",
        plain=(2,),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="as with torch; TensorFlow takes 15 s to import",
    ),
    "plain-other-torch": HostDrill(
        title="One host runs the script without allaboard: training starts, and nothing is wrong",
        framework="torch",
        expects="",
        plain=(2,),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="as where it is the first host",
    ),
}
