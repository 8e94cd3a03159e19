mpirun -np 4 -x MASTER_ADDR=node0 -x MASTER_PORT=29500 -x WORLD_SIZE=4 -x RANK=0 python train.py
