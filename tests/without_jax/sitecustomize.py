"""Jobs that have this folder in PYTHONPATH find no JAX, as most who use TensorFlow: that loads JAX where
it is installed, which takes a second of a core."""

import sys

sys.modules.update(jax=None)
