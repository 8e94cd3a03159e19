#!/bin/bash
# what looks like a torn command, and is none
while [ $# -gt 0 ]; do
  case "$1" in
    --nnodes) NNODES=$2; shift 2 ;;
    --debug)
      DEBUG=1; shift ;;
    -h | --help) echo "usage: $0 [--nnodes N]"; exit ;;
  esac
done
ARGS=(
  --lr 0.1
  # --wd 0.1
  --epochs 3
)
cat <<\EOF > note.txt
torchrun --nproc-per-node 4
  --nnodes 2 \ 
  --standalone train.py
EOF
echo "usage: torchrun train.py
  --lr LR"
cp -r My\ Files\ /scratch \
  || true
python - <<EOF
print("--x") \ 
--y
EOF
torchrun --standalone --nproc-per-node 4 train.py "${ARGS[@]}" \
  --out "My Run" \
  # --resume last.pt
  
torchrun --standalone --nproc-per-node 4 `# all of them` \
  train.py --note 'a \ 
  --b' \ 

if [ -n "$DEBUG" ]; then torchrun --standalone train.py --debug; fi
