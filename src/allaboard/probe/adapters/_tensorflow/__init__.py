"""Hooks for TensorFlow and Keras, one file per subject."""
