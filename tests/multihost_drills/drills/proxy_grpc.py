"""A web proxy is set on one host, and gRPC sends its connections there."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="ENV008",
    blames=(2,),
    allowed=("JOIN004", "EXIT005"),
    ends=False,
    environment=lambda host, env: (
        env | ({"http_proxy": "http://10.77.9.9:3128"} if host == 2 else {})
    ),
    long="TensorFlow hangs until it is ended",
)
