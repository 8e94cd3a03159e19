"""Faults between hosts, one file each; the file's name is the drill's."""
