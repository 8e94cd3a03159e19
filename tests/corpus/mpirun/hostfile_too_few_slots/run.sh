#!/bin/bash
export NCCL_DEBUG=INFO
mpirun -np 16 --hostfile hostfile -x NCCL_DEBUG -x PATH python train.py
