#!/bin/sh
source /opt/intel/oneapi/setvars.sh
mpirun -n 4 -ppn 2 -f hostfile -genv I_MPI_PIN_DOMAIN=auto -genv CCL_WORKER_COUNT=1 python -u train.py --backend ccl
mpiexec.hydra -n 4 -ppn 2 -hosts node1,node2 python train.py
