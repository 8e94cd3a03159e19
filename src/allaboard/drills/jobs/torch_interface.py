"""The job of torch_ddp.py, which itself sets gloo's interface to the one that INTERFACE names."""

import os
import runpy
from pathlib import Path

os.environ["GLOO_SOCKET_IFNAME"] = os.environ["INTERFACE"]
runpy.run_path(str(Path(__file__).with_name("torch_ddp.py")), run_name="__main__")
