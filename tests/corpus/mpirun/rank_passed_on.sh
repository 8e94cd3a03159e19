mpirun -np 4 -x RANK -x MASTER_ADDR=node0 python train.py
