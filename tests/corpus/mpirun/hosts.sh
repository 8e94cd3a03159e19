mpirun -np 8 -H node1:4,node2:4 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x PATH python train.py
