mpirun -np 1 -x RANK=0 python train.py : -np 1 -x RANK=1 python train.py
