#!/bin/bash
# two jobs of two, one after the other, and then what is no job at all
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2
RANK=0 python train.py --stage 1 2>&1 | tee a0.log &
RANK=1 python train.py --stage 1
RANK=0 python train.py --stage 2 &
RANK=1 python train.py --stage 2
wait
(RANK=0 python train.py --stage 3) &
RANK=1 python train.py --stage 3
if [ "$HALF" = 0 ]; then RANK=0 python train.py; else RANK=1 python train.py; fi
[ "$HALF" = 0 ] && RANK=0 python train.py
[ "$HALF" = 1 ] && RANK=1 python train.py
first() { RANK=0 python train.py; }
second() { RANK=1 python train.py; }
case "$1" in
  0) RANK=0 python train.py ;;
  1) RANK=1 python train.py ;;
esac
