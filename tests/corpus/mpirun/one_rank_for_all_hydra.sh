mpiexec.hydra -n 4 -ppn 2 -f hosts -genv WORLD_SIZE 4 -genv RANK 0 python train.py
