from .distributed_c10d import *
