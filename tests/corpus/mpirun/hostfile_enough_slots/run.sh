#!/bin/bash
mpirun -np 8 --hostfile hostfile -x PATH python train.py
