#!/bin/bash
export MASTER_ADDR=node01 MASTER_PORT=5001
mpirun -np 8 -H node01:4,node02:4 -x MASTER_ADDR -x MASTER_PORT bash -c 'RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE exec python train.py'
