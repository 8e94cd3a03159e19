#!/bin/bash
for host in $(scontrol show hostnames); do echo "$host slots=8"; done > hostfile
mpirun -np 16 --hostfile hostfile python train.py
