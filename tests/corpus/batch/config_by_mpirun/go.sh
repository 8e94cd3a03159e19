mpirun -np 2 -H n0:1,n1:1 accelerate launch --config_file node.yaml --machine_rank $OMPI_COMM_WORLD_RANK tune.py
