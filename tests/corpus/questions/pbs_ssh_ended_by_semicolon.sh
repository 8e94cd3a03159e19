#!/bin/sh
#PBS -V
#PBS -q gpu
#PBS -N eann
#PBS -l nodes=2:ppn=2
cd $PBS_O_WORKDIR
NPROC=2
MASTER=`/bin/hostname -s`
SLAVES=`cat $PBS_NODEFILE | grep -v $MASTER | uniq`
HOSTLIST="$MASTER $SLAVES"
RANK=0
for node in $HOSTLIST; do
  ssh -q $node cd $PBS_O_WORKDIR; python -m torch.distributed.launch --nproc_per_node=$NPROC --nnodes=2 --node_rank=$RANK --master_addr=$MASTER --master_port=29544 train.py &
  RANK=$((RANK+1))
done
wait
