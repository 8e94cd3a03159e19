"""One host's JAX coordinator address is that of another host of the job, which is not process 0."""

from multihost_drills.contract import MEETING_PORT, HostDrill

DRILL = HostDrill(
    framework="jax",
    expects="NET017",
    hosts=3,
    blames=(2,),
    on=(2,),
    environment=lambda host, env: (
        env | ({"JAX_COORDINATOR_ADDRESS": f"h1:{MEETING_PORT}"} if host == 2 else {})
    ),
    allowed=("JOIN001",),
)
