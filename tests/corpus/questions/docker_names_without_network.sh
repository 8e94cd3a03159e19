#!/bin/sh
docker run -d --name trainer1 --hostname=trainer1 -p 12356:12356 -e MASTER_ADDR=trainer1 -e WORLD_SIZE=2 -e RANK=0 -e MASTER_PORT=12356 registry.example/intent:latest
docker run -d --name trainer2 --hostname=trainer2 -e MASTER_ADDR=trainer1 -e WORLD_SIZE=2 -e RANK=1 -e MASTER_PORT=12356 registry.example/intent:latest
