from .distributed_c10d import barrier, init_process_group

__all__ = ["barrier", "init_process_group"]
