mpirun -np 4 -H server1,server2 -x MASTER_ADDR=127.0.0.1 -x MASTER_PORT=29500 python train.py
