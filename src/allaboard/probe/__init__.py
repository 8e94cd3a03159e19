"""What runs inside the user's process: standard library alone, Python 3.9 and newer.

The folder is loaded under the private name ``_allaboard_probe`` by ``start/sitecustomize.py``, so
it works in an interpreter that has never heard of allaboard. All imports in here are relative.
"""
