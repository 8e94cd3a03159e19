horovodrun -np 8 -H node1:2,node2:2 python train.py
