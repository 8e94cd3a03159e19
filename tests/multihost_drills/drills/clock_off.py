"""The wall clock of one host is five minutes ahead."""

from multihost_drills.contract import HostDrill
from testbed.clock_skew import skewed

DRILL = HostDrill(
    framework="torch",
    expects="ENV009",
    blames=(2,),
    environment=lambda host, env: skewed(env, 300) if host == 2 else env,
    needs=("clock",),
    arguments=("--steps", "20"),
    options=("--env", "LD_PRELOAD="),  # the agent's clock is what counts, and torch takes it ill
    exit_codes=(0,),
)
