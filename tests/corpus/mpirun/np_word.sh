mpirun -np four python train.py
