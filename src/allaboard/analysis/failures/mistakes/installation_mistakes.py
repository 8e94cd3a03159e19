"""Exceptions that an installation, a host or a numerical set-up causes, and no line of the user's.

The wording is that of Python 3.8 to 3.13, of glibc's dynamic loader, and of the libraries that each
entry names.
"""

from __future__ import annotations

from allaboard.analysis.failures.mistakes.known_mistake import KnownMistake

_COUNT_GPUS = (
    "ray status   # which GPUs are there, free and asked for? One bundle a GPU of each engine: nodes x GPUs "
    "of the placement group >= engines x their tensor parallel size"
)

INSTALLATION_MISTAKES = (
    KnownMistake(
        pattern=r"Placement is invalid because rank must be less than world size",
        cause="the placement names more ranks than processes were started",
        fix="python3 -m oneflow.distributed.launch --nproc_per_node=N SCRIPT   # as many processes as the "
        "placement has ranks; or a placement of the ranks that there are",
        sample="Error: Placement is invalid because rank must be less than world size!",
        near_miss="Placement is invalid because its type is not known",
        source="OneFlow 0.7 to 0.9 (core/job/placement)",
    ),
    KnownMistake(
        pattern=r"compile with USE_DIST_KVSTORE=1 to use (?P<kind>\w+)",
        cause="this build of MXNet has no distributed key-value store, which {kind} needs",
        fix="python -c 'import mxnet; print(mxnet.__file__)'   # is it the build that you made? make "
        "clean_all; "
        "make USE_DIST_KVSTORE=1, install its python folder anew; or a wheel of PyPI, which has it",
        sample="[13:07:50] src/kvstore/kvstore.cc:37: compile with USE_DIST_KVSTORE=1 to use "
        "dist_device_sync",
        near_miss="compile with USE_CUDA=1 to use the GPU",
        source="MXNet 0.5 to 1.9 (src/kvstore/kvstore.cc)",
    ),
    KnownMistake(
        pattern=r"^No hosts from previous set remaining, unable to broadcast state",
        cause="every host of the last round has failed or was taken away, so no worker is left that has the "
        "state of the training",
        fix="read the log of the worker that failed first: a failed host is blacklisted (horovodrun "
        "--blacklist-cooldown-range 10 100); keep a host through each change of discover_hosts.sh, and start "
        "again from the last checkpoint",
        sample="No hosts from previous set remaining, unable to broadcast state.",
        near_miss="No hosts found",
        source="Horovod 0.20 to 0.28 (runner/elastic/driver.py)",
    ),
    KnownMistake(
        pattern=r"MPI_ERR_RANK: invalid rank|Invalid rank has value (?P<rank>-?\d+)"
        r" but must be nonnegative and less than (?P<size>\d+)",
        cause="it sends to a rank that its communicator does not have; if each process counts itself as the "
        "only one, mpirun is of another MPI than mpi4py",
        fix="mpirun --version; python -c 'import mpi4py; print(mpi4py.get_config())'; mpirun -np 2 python -c "
        "'from mpi4py import MPI; print(MPI.COMM_WORLD.size)'   # must print 2 twice",
        sample="MPI_ERR_RANK: invalid rank",
        near_miss="MPI_ERR_TAG: invalid tag",
        source="Open MPI 1.10 to 5, MPICH 3 to 4",
    ),
    KnownMistake(
        pattern=r"(?P<library>[\w.+-]+\.so[\w.]*): undefined symbol: (?P<symbol>nccl\w+)",
        cause="{library} was built for another NCCL than the one that is loaded: {symbol} is not in it",
        fix="pip list | grep -i nccl; ldconfig -p | grep nccl; echo $LD_LIBRARY_PATH $LD_PRELOAD   # one "
        "NCCL alone, that of this PyTorch: pip install --force-reinstall torch brings it",
        sample="/v/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister",
        near_miss="loaded libtorch_cuda.so with symbol ncclCommRegister",
        source="glibc's loader; PyTorch 2.0 to 2.13",
    ),
    KnownMistake(
        pattern=r"(?P<library>[\w.+-]+\.so[\w.]*): (?:undefined symbol: \S+|cannot open shared "
        r"object file)",
        cause="{library} does not fit the libraries that are installed beside it",
        fix="pip check; ldd $(find $(python -c 'import site; print(site.getsitepackages()[0])') -name "
        "'{library}') | grep 'not found'   # reinstall the package and what it was built for (torch, CUDA) "
        "together",
        sample="/v/site-packages/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
        near_miss="libfoo.so: opened in 3 ms",
        source="glibc's loader",
    ),
    KnownMistake(
        pattern=r"A module that was compiled using NumPy 1\.x cannot be run in\s+NumPy (?P<version>[\d.]+)",
        cause="a package was built for NumPy 1, and NumPy {version} is installed",
        fix="pip install 'numpy<2'   # or a newer version of the package that was built for NumPy 1",
        sample="\nA module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.0 as it may crash.",
        near_miss="a module that was compiled for NumPy 2.1",
        source="NumPy 2.0 to 2.3",
    ),
    KnownMistake(
        pattern=r"^No module named '(?P<top>\w+)(?P<below>[\w.]*)'$",
        cause="this interpreter has no module {top}{below}",
        fix="python -m pip install {top}   # with the interpreter that runs the ranks, on every host; is it "
        "the same environment as where it works? python -m pip show {top}",
        sample="No module named 'einops'",
        near_miss="No module in use named 'einops'",
        source="Python 3.6 to 3.13",
    ),
    KnownMistake(
        pattern=r"\[Errno 13\] Permission denied: '(?P<path>[^']+)'",
        cause="this user may not use {path} on this host",
        fix="id; ls -ld '{path}' \"$(dirname '{path}')\"   # on that host, as the job's user: write "
        "elsewhere, or have the owner allow it",
        sample="[Errno 13] Permission denied: '/shared/out/run7'",
        near_miss="Permission denied by the policy of 'runs'",
        source="Python 3.3 to 3.13",
    ),
    KnownMistake(
        pattern=r"Found no NVIDIA driver on your system",
        cause="this host, or its container, has no NVIDIA driver",
        fix="nvidia-smi   # on that host, and inside the container: docker run --gpus all, in Kubernetes "
        "resources.limits nvidia.com/gpu, in Slurm --gres=gpu:N",
        sample="Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and "
        "installed a driver",
        near_miss="Found the NVIDIA driver 550.54",
        source="PyTorch 1.0 to 2.13",
    ),
    KnownMistake(
        pattern=r"no kernel image is available for execution on the device",
        cause="a library has no code for this model of GPU: it was built for others",
        fix="python -c 'import torch; print(torch.cuda.get_arch_list(), "
        "torch.cuda.get_device_capability())'   # install a build that has the GPU's; extensions of your "
        "own: build again with TORCH_CUDA_ARCH_LIST",
        sample="CUDA error: no kernel image is available for execution on the device",
        near_miss="the kernel image is available for download",
        source="CUDA 9 to 13 (cudaErrorNoKernelImageForDevice)",
    ),
    KnownMistake(
        pattern=r"peer access is not supported between these two devices",
        cause="two GPUs of this host cannot reach each other's memory, and a library needs it",
        fix="nvidia-smi topo -p2p r   # NCCL_P2P_DISABLE=1 lets NCCL go through host memory; a server of "
        "models: --disable-custom-all-reduce",
        sample="CUDA error: peer access is not supported between these two devices",
        near_miss="peer access is supported between all devices",
        source="CUDA 9 to 13 (cudaErrorPeerAccessUnsupported)",
    ),
    KnownMistake(
        pattern=r"You requested (?:GPUs?|gpu): ?(?P<asked>\[[^\]\n]*\]|\S+)\s+But your machine only has: "
        r"(?P<seen>\[[^\]\n]*\])",
        cause="the trainer asks for the GPUs {asked}, and this process sees {seen}",
        fix="nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES   # where the process runs; then Trainer(devices=N) "
        "of those that it sees, and under Ray or Slurm a request for the GPUs",
        sample="You requested GPUs: [0]\n But your machine only has: []",
        near_miss="You requested 2 GPUs and your machine has 8",
        source="Lightning 1.0 to 2.5",
    ),
    KnownMistake(
        pattern=r"Current loss scale already at minimum",
        cause="gradients overflowed in fp16 at every loss scale, so the loss is not finite",
        fix="bf16 instead of fp16 if the GPUs have it; a lower learning rate, gradient clipping, and a look "
        "for the first OVERFLOW line; initial_scale_power alone seldom helps",
        sample="Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        near_miss="Current loss scale 128 was decreased",
        source="DeepSpeed 0.3 to 0.17",
    ),
    KnownMistake(
        pattern=r"No available memory for the cache blocks|larger than the maximum number of tokens that "
        r"can be stored in KV cache|is larger than the available KV cache memory",
        cause="the model leaves too little GPU memory for the KV cache",
        fix="a smaller --max-model-len, a higher --gpu-memory-utilization, more GPUs "
        "(--tensor-parallel-size); nvidia-smi   # does another process hold memory?",
        sample="No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine.",
        near_miss="Memory for the cache blocks: 12 GiB",
        source="vLLM 0.2 to 0.11",
    ),
    KnownMistake(
        pattern=r"Timed out waiting for (?:new )?engine core process(?:es)? to start",
        cause="the processes of vLLM's engine were not ready in time: they still loaded the weights, or "
        "one of them hangs",
        fix="export VLLM_ENGINE_READY_TIMEOUT_S=1800   # weights on a slow or shared disk need longer; "
        "else read what the (EngineCore) and (Worker) processes wrote last; while it waits, on that "
        "host: allaboard diagnose",
        sample="Timed out waiting for engine core processes to start. This is often caused by slow weight "
        "loading for large models. Waited 600s",
        near_miss="Waiting for 1 local, 0 remote core engine proc(s) to start.",
        source="vLLM 0.11 to 0.33 (v1/engine/core_client.py)",
    ),
    KnownMistake(
        pattern=r"current node timed out during startup|Failed to (?:start|connect to)(?: the)? GCS\b"
        r"|(?i:(?:head )?node (?:temp_dir|session dir)) (?:was )?not found in NodeInfo"
        r"|Session name \S{1,120} does not match persisted value|Can't find a `node_ip_address\.json`"
        r"|Could not (?:read|find) '\w+' from GCS",
        cause="Ray could not start its own servers on this host (gcs_server, raylet), or does not reach "
        "those of the head node",
        fix="ray stop --force; tail -n 40 /tmp/ray/session_latest/logs/{{gcs_server,raylet}}.{{out,err}}; "
        "df -h /tmp /dev/shm; ulimit -n -u   # then ray start --head anew; on other hosts ray status "
        "--address HEAD:6379: the same version of Ray, and no old session",
        sample="The current node timed out during startup. This could happen because some of the Ray "
        "processes failed to startup.",
        near_miss="The current node has not been updated within 30 seconds",
        source="Ray 1.9 to 2.60 (_private/node.py)",
    ),
    KnownMistake(
        pattern=r"Hostfile (?:contains (?:a bad entry|multiple entries|duplicate hosts)"
        r"|is (?:empty or )?not formatted correctly)[^\n]{0,200}",
        cause="the hostfile has a line that the launcher cannot read; no rank was started",
        fix="each line of the hostfile: HOST slots=N; then allaboard check HOSTFILE",
        sample="Hostfile contains a bad entry: 10.0.0.8 lots=8, unable to proceed with launching",
        near_miss="Hostfile contains 4 entries",
        source="DeepSpeed 0.3 to 0.17 (launcher/runner.py)",
    ),
    KnownMistake(
        pattern=r"^'?PDSH_SSH_ARGS_APPEND'?$",
        cause="DeepSpeed's launcher before 0.14.1 expects the variable PDSH_SSH_ARGS_APPEND where --ssh_port "
        "is given; no rank was started",
        fix="export PDSH_SSH_ARGS_APPEND=   # on the host that launches; or: pip install -U "
        "'deepspeed>=0.14.1'",
        sample="'PDSH_SSH_ARGS_APPEND'",
        near_miss="'PDSH_SSH_ARGS'",
        source="DeepSpeed 0.13 to 0.14.0 (launcher/multinode_runner.py), mended in 0.14.1",
    ),
    KnownMistake(
        pattern=r"(?P<what>Hostname '[^'\n]{1,200}' not found in hostfile"
        r"|No slot '\w+' specified on host '[^'\n]{1,200}')",
        cause="--include or --exclude names what the hostfile does not have: {what}; no rank was started",
        fix="grep -n '' HOSTFILE   # its names and slots=N, letter by letter as in --include HOST:0,1; "
        "slots count from 0",
        sample="Hostname 'gpu-7' not found in hostfile",
        near_miss="Hostname 'gpu-7' found in hostfile",
        source="DeepSpeed 0.3 to 0.17 (launcher/runner.py)",
    ),
    KnownMistake(
        pattern=r"launcher '(?P<launcher>\w+)' not installed",
        cause="the launcher's program {launcher} is not on this host; no rank was started",
        fix="install {launcher} (apt-get install {launcher}), or start one launcher on each host: deepspeed "
        "--no_ssh --node_rank K, torchrun, or srun",
        sample="launcher 'pdsh' not installed.",
        near_miss="launcher 'pdsh' installed",
        source="DeepSpeed 0.3 to 0.17 (launcher/runner.py)",
    ),
    KnownMistake(
        pattern=r"PytorchStreamWriter failed writing file|basic_ios::clear: iostream error"
        r"|inline_container\.cc:\d+\] ?\. "
        r"unexpected pos \d+ vs \d+",
        cause="a checkpoint could not be written to its end: the disk, or the user's share of it, is full, "
        "or it went away",
        fix="df -h DIR; df -i DIR; quota -s   # DIR: where the checkpoint is written; then remove "
        "the broken file",
        sample="[enforce fail at inline_container.cc:445] . PytorchStreamWriter failed writing file "
        "data/176: file write failed",
        near_miss="PytorchStreamReader failed reading zip archive",
        source="PyTorch 1.6 to 2.13 (caffe2/serialize)",
    ),
    KnownMistake(
        pattern=r"(?P<what>Error while deserializing header[^\n]{0,60}|incomplete metadata, file not fully "
        r"covered|PytorchStreamReader failed [^\n]{0,60}|invalid header or archive is corrupted"
        r"|invalid load key, 'v'|unexpected EOF, expected \d+ more bytes|storage has wrong size: expected"
        r"[^\n]{0,60}|^Ran out of input$)",
        cause="a file of weights or a checkpoint is not whole, or only the pointer of one (Git LFS): {what}",
        fix="ls -l FOLDER; head -c 60 FILE   # on the host of this rank, and where it worked: `version "
        "https://git-lfs` is a pointer (git lfs pull); if it is shorter, copy it anew, or resume from the "
        "checkpoint before",
        sample="Error while deserializing header: HeaderTooLarge",
        near_miss="Error while serializing: IoError",
        source="safetensors 0.3 to 0.7, PyTorch 1.6 to 2.13, Python's pickle",
    ),
    KnownMistake(
        pattern=r"(?P<what>(?:No such file or directory|Stale file handle|Device or resource "
        r"busy|Directory not "
        r"empty)[^\n]{0,60}?/[^\n']{0,200}(?:torchinductor_|\.triton/cache|/triton/)[^\n']{0,80})",
        cause="the ranks share one cache of compiled kernels, and one removed or replaced what another was "
        "using: {what}",
        fix="give each rank, or at least each host, a cache of its own on a local disk, before torch is "
        "imported: TORCHINDUCTOR_CACHE_DIR=/tmp/inductor_$RANK TRITON_CACHE_DIR=/tmp/triton_$RANK",
        sample="[Errno 2] No such file or directory: "
        "'/tmp/torchinductor_u/triton/4/5eba80/triton_.cubin.tmp.pid_93828_100098'",
        near_miss="[Errno 2] No such file or directory: '/data/triton.json'",
        source="PyTorch 2.1 to 2.10 (inductor), Triton 2.0 to 3.6 (runtime/cache.py)",
    ),
    KnownMistake(
        pattern=r"Free memory on device (?:cuda:\d+ )?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on "
        r"startup is less "
        r"than desired GPU memory utilization \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        cause="only {free} of the GPU's {total} GiB were free when vLLM started, and it wants {wanted}",
        fix="nvidia-smi   # on that host: which process holds the GPU's memory? End it, or: "
        "--gpu-memory-utilization lower than {share}",
        sample="Free memory on device (16.61/23.68 GiB) on startup is less than desired GPU memory "
        "utilization (0.8, 18.95 GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
        "processes.",
        near_miss="Free memory on device (16.61/23.68 GiB) on startup",
        source="vLLM's v1 (worker/gpu_worker.py), from a report of 2025",
    ),
    KnownMistake(
        pattern=r"unable to open shared memory object </torch_\d+\w*>",
        cause="this process may open no more files: each shared tensor of a loader's workers needs one",
        fix="ulimit -n $(ulimit -Hn) before the start; or "
        "torch.multiprocessing.set_sharing_strategy('file_system'), or fewer workers",
        sample="unable to open shared memory object </torch_34609_1792353697> in read-write mode",
        near_miss="unable to open file </data/torch_1.pt>",
        source="PyTorch 1.0 to 2.13 (MapAllocator.cpp)",
    ),
    KnownMistake(
        pattern=r"peer mapping resources exhausted|CUDA_ERROR_TOO_MANY_PEERS",
        cause="CUDA maps the memory of a GPU to at most eight other GPUs, and more are visible here",
        fix="show each process no more than eight GPUs (CUDA_VISIBLE_DEVICES), or exchange without peer "
        "access: NCCL_P2P_DISABLE=1; nvidia-smi topo -p2p r   # which pairs have it?",
        sample="CUDA error: peer mapping resources exhausted",
        near_miss="CUDA error: peer access is already enabled",
        source="CUDA 9 to 13 (cudaErrorTooManyPeers)",
    ),
    KnownMistake(
        pattern=r"CUDA-capable device\(s\) is/are busy or unavailable",
        cause="the GPU takes no more processes: it is in exclusive mode and another process holds it, or "
        "it is out of order",
        fix="nvidia-smi; nvidia-smi -q -d COMPUTE   # on that host: is another process on it? Start one "
        "process for a GPU, or set its mode back: sudo nvidia-smi -c DEFAULT",
        sample="CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        near_miss="CUDA-capable devices found: 8",
        source="CUDA 9 to 13 (cudaErrorDevicesUnavailable)",
    ),
    KnownMistake(
        pattern=r"Placement group creation timed out after (?P<limit>[\d.]+) seconds",
        cause="Ray had not got the CPUs and GPUs that the job asks for after {limit} s",
        fix="ray status   # which resources are there, free and asked for? Ask for fewer, or for others, "
        "or add nodes",
        sample="Placement group creation timed out after 100 seconds. Make sure your cluster either has "
        "enough resources or use an autoscaling cluster.",
        near_miss="Placement group creation took 3 seconds",
        source="xgboost_ray 0.1 (main.py), from a report of 2023",
    ),
    KnownMistake(
        pattern=r"You set `(?P<option>devices|num_nodes)=(?P<set>\d+)` in Lightning, but the number of "
        r"(?P<what>tasks per node|nodes) configured in SLURM `(?P<flag>--[\w-]+)=(?P<have>\d+)` does not "
        r"match",
        cause="Slurm has {flag}={have}, and the Trainer has {option}={set}",
        fix="#SBATCH {flag}={set}   # and start it with srun; or Trainer({option}={have})",
        sample="You set `devices=2` in Lightning, but the number of tasks per node configured in SLURM "
        "`--ntasks-per-node=1` does not match. HINT: Set `devices=1`.",
        near_miss="You set `devices=2` in Lightning",
        source="Lightning 2.0 to 2.5 (fabric/plugins/environments/slurm.py)",
    ),
    KnownMistake(
        pattern=r"Failed to create placement group '\w+' because name '(?P<name>[^'\n]{1,120})' already "
        r"exists",
        cause="Ray runs the task a second time, and the placement group {name} of its first try is still "
        "there: what ended the first try is the cause",
        fix="read what ended the first try: ray list tasks --detail; ray logs raylet.out; on the head node "
        "dmesg -T | grep -iE 'killed process|oom'; with @ray.remote(max_retries=0) it is not tried again",
        sample="System error: Failed to create placement group 'd1c0' because name 'global_pool_8:0' "
        "already exists.",
        near_miss="Failed to create placement group 'd1c0': no nodes",
        source="Ray 2.0 to 2.50 (gcs_placement_group_manager.cc)",
    ),
    KnownMistake(
        pattern=r"placement group bundle index (?P<index>\d+) is invalid\. Valid placement group indexes: "
        r"(?P<valid>[\d-]+)",
        cause="an engine wants bundle {index} of a placement group that has the bundles {valid}: more GPUs "
        "are asked for than the group was made with",
        fix=_COUNT_GPUS,
        sample="placement group bundle index 6 is invalid. Valid placement group indexes: 0-4",
        near_miss="placement group bundle 6 was placed",
        source="Ray 1.0 to 2.50 (util/placement_group.py)",
    ),
    KnownMistake(
        pattern=r"(?P<what>number of required GPUs exceeds the total number of available GPUs"
        r"|Total available GPUs? (?P<have>[\d.]+) (?:is|are) less than total desired GPUs? (?P<want>[\d.]+)"
        r"|Cannot provide a placement group of [^\n]{1,200}? within \d+ seconds)",
        cause="the cluster of Ray has fewer GPUs that are free than the job asks for: {what}",
        fix=_COUNT_GPUS,
        sample="Total available GPUs 4 is less than total desired GPUs 8",
        near_miss="Total available GPUs: 8",
        source="vLLM 0.2 to 0.11 (executor/ray_utils.py), verl 0.1 to 0.5 (single_controller)",
    ),
    KnownMistake(
        pattern=r"The actor died (?:unexpectedly before finishing|because of an error raised in)"
        r"|The actor is dead because its (?:worker process|node) has died",
        cause="a worker process of Ray died below it",
        fix="ray logs raylet.out -ip NODE_IP; on that node: dmesg -T | grep -iE 'killed process|oom'; in "
        "Kubernetes kubectl describe pod POD   # OOMKilled?",
        sample="The actor died unexpectedly before finishing this task.\n\tclass_name: T\nThe "
        "actor is dead because "
        "its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits",
        near_miss="The actor was created on the node",
        source="Ray 2.0 to 2.50 (exceptions.py, core worker)",
    ),
)
"""Mistakes, the more special ones first."""
