mpirun -np 0 -H a:4 python train.py
