mpirun --allow-run-as-root --hostfile hosts -np 16 --mca btl_tcp_if_include eth0 -x MASTER_ADDR=node1 -x MASTER_PORT=29500 python train.py
