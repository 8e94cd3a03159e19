export MASTER_ADDR=$(head -n 1 hosts | awk '{print $1}')
mpirun -np 8 --hostfile hosts -x MASTER_ADDR -x MASTER_PORT=29500 python train.py
