import glob

import torch
from mpi4py import MPI
from reader import load

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
files = sorted(glob.glob("/data/*.npz"))
mine = files[rank::size]
for epoch in range(5):
    for step in range(0, len(mine), 16):
        batch = [load(name) for name in mine[step : step + 16]]
        compute(batch)
        comm.Barrier()
