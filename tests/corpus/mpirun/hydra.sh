mpiexec -n 8 -ppn 4 -hosts a,b python train.py
