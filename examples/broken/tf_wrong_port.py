"""tf_digits.py with a mistake: worker 1's TF_CONFIG has a wrong port for worker 0.

Start it like tf_digits.py, but under ``timeout -k 5 40``: TensorFlow catches SIGTERM while it
waits, so only SIGKILL ends it. Worker 1 knocks at a port nobody listens on, while worker 0 waits
for it at the right one.
"""

import json
import os
import sys
from pathlib import Path


def misspell_port() -> None:
    """Edit worker 1's TF_CONFIG, as a slip of the hand would have."""
    config = json.loads(os.environ["TF_CONFIG"])
    if config["task"]["index"] != 1:
        return
    host, port = config["cluster"]["worker"][0].rsplit(":", 1)
    wrong = int(port) + 1000 if int(port) + 1000 < 65536 else int(port) - 1000
    config["cluster"]["worker"][0] = f"{host}:{wrong}"  # the mistake
    os.environ["TF_CONFIG"] = json.dumps(config)


if __name__ == "__main__":
    misspell_port()  # before TensorFlow is imported, as if the environment had been so all along
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import tf_digits

    tf_digits.main()
