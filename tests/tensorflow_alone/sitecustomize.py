"""Programs that have this folder in PYTHONPATH find neither JAX nor scikit-learn, as with TensorFlow alone:
it loads both where they are installed, which takes two seconds of a core."""

import sys

sys.modules.update(jax=None, sklearn=None)
