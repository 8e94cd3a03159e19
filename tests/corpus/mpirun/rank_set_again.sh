mpirun -np 4 -x RANK=0 bash -c 'export RANK=$OMPI_COMM_WORLD_RANK; python train.py'
