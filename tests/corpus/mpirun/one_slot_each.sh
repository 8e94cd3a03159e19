#!/bin/sh
mpirun -np 4 --host node1,node2 python train.py
