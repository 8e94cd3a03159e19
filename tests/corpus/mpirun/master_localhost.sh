mpirun -np 8 -H node1:4,node2:4 -x MASTER_ADDR=127.0.0.1 -x MASTER_PORT=29500 python train.py
