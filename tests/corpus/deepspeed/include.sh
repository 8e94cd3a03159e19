deepspeed --include "node1:0,1@node2:0,1" --hostfile hosts train.py
