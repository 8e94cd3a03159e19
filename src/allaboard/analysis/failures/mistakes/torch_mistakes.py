"""Mistakes in the set-up of distributed PyTorch whose exceptions are known, with cause and remedy."""

from __future__ import annotations

from allaboard.analysis.failures.mistakes.known_mistake import KnownMistake

_SOURCES = "PyTorch 1.5 to 2.13"

_FITTING_ARGUMENTS = (
    "pass as many tensors as the group has ranks, of one shape and type, and a root below the world size. "
    "If ranks have different numbers of rows: gather the numbers, pad to the largest, cut the rest off after"
)
_SIZES = (
    r"world[ _]size|(?:tensor|pipeline|context|expert|sequence|data|model)[ _-](?:model[ _-])?"
    r"parallel(?:[ _-]size)?|total_model_size|[tpd]p_size|nnodes|num_nodes|device[-_ ]count|local[-_]rank"
    r"|number of (?:required )?(?:gpus|nodes|processes|devices)|num_stages"
)
_DIFFER = (
    r"divisible|divide|does not match|must match|(?:must|should) (?:be )?equal|to be the same as"
    r"|exceeds?|(?:is|be) (?:larger|greater|bigger|smaller|less)\b|is not equal"
)
_SIZES_DIFFER = (
    rf"(?i:(?P<what>[^\n]{{0,120}}(?:\b(?:{_SIZES})\b[^\n]{{0,80}}?(?:{_DIFFER})"
    rf"|(?:{_DIFFER})\b[^\n]{{0,60}}?\b(?:{_SIZES}))\b[^\n]{{0,120}}))"
)
"""Matches what a check says of two numbers of the launch that do not fit each other."""
_MODEL_SIZES = (
    r"num[_ -]?layers|number of layers|num_\w{0,20}heads|attention heads|(?:hidden|ffn|vocab\w*|embedding)"
    r"[_ -](?:dim|size)\w*|seq\w*[_ -]len\w*|first dimension of the tensor|(?:global|micro|mini|train)[_ -]?"
    r"batch[_ -]?size|num_\w{0,20}experts|number of experts"
)
"""Sizes of a model or of its input that are divided among ranks."""
_SIZES_RAISED_IN = (
    r"/(?:megatron|deepspeed|vllm|sglang|colossalai|nemo|verl|accelerate|lightning|torch)[^/]*/"
    r"|Megatron|assert |raise (?:Assertion|Value)Error"
)
_GROUP = (
    r"(?:\b[\w -]{0,60}\b(?:parallel|process|world|collective)[ _](?:[\w-]{1,20} ){0,2}?groups?\b"
    r"|\bdistributed (?:environment|backend)|\btorch\.distributed)"
)
"""Matches what a library calls the ranks that it has put together."""

TORCH_MISTAKES = (
    KnownMistake(
        pattern=r"invalid literal for int\(\) with base 10: 'tcp://\S{1,200}?:(?P<port>\d{1,5})'",
        cause="Kubernetes sets a variable like MASTER_PORT in every pod, for a Service named master, and the "
        "pod does not set its own: it is a URL, and no number",
        fix="in the pod's spec: env: [{{name: MASTER_PORT, value: '{port}'}}], or enableServiceLinks: false; "
        "or give the Service another name",
        sample="invalid literal for int() with base 10: 'tcp://10.96.12.7:29500'",
        near_miss="invalid literal for int() with base 10: '29500a'",
        source="Kubernetes 1.0 to 1.34 (variables of a Service); Python 3",
    ),
    KnownMistake(
        pattern=r"mesh_service\.cc:\d+ ?: Check failed: impl_->channel->WaitForConnected",
        raised_in=r"/xla_model\.py (?:rendezvous|mesh_reduce)|_xla_rendezvous",
        cause="no process of the job serves the mesh where this one asks for it: the processes that "
        "xmp.spawn started have ended, or the parent asks, which is none of them",
        fix="call xm.rendezvous and xm.mesh_reduce only within the function that xmp.spawn runs, in all "
        "of its "
        "processes   # not after spawn has returned; else read the log of process 0: did it end first?",
        sample="tensorflow/compiler/xla/xla_client/mesh_service.cc:316 : Check failed: "
        "impl_->channel->WaitForConnected( std::chrono::system_clock::now() + seconds)",
        sample_frame=(
            "/v/lib/python3.6/site-packages/torch_xla/core/xla_model.py",
            "return torch_xla._XLAC._xla_rendezvous(get_ordinal(), tag, payload, replicas)",
        ),
        near_miss="mesh_service.cc:370 : Failed to meet rendezvous 'test': Socket closed (14)",
        source="torch_xla 1.5 to 1.13 (XRT, mesh_service.cc)",
    ),
    KnownMistake(
        # Each backend checks its arguments before it communicates: c10d/Utils.hpp and ProcessGroup*.cpp.
        pattern=r"ProcessGroup\w+::\w+: (?P<what>(?:invalid|[Ii]ncorrect|requires?|unsupported|unexpected"
        r"|expected)\b[^\n]{1,160})",
        cause="the collective refuses the arguments of this call: {what}",
        fix=_FITTING_ARGUMENTS,
        sample="ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (11, 4), got (8, 4))",
        near_miss="transforms: invalid tensor size at index 0 (expected (3, 224, 224), got (1, 28, 28))",
        source="PyTorch 1.0 to 2.13",
    ),
    KnownMistake(
        pattern=r"(?P<what>(?:ProcessGroup\w+\.cpp:\d+\] Check failed: [^\n]{1,120}?[sS]hape[^\n]{1,60}"
        r"|output tensor size must be equal to world_size times input tensor size"
        r"|input tensor must be the same size as output size times world size"
        r"|All tensor operands to scatter/gather must have the same (?:number of elements|size)"
        r"|Split sizes doesn'?t match total dim 0 size"
        r"|Invalid usage of tensors with different dtypes ?Found [^\n]{1,60}"
        r"|Tensor list (?:input|output) to (?:scatter|gather) must match number of collective "
        r"participants))",
        cause="the collective refuses the arguments of this call: {what}",
        fix=_FITTING_ARGUMENTS,
        sample="output tensor size must be equal to world_size times input tensor size",
        near_miss="output tensor size must be a multiple of 8",
        source="PyTorch 1.9 to 2.13",
    ),
    KnownMistake(
        pattern=r"The connection to the C10d store has failed",
        raised_in=r"/torch/distributed/elastic/",
        cause="the store of torchrun's rendezvous has gone; another torchrun with the same --rdzv-endpoint, "
        "which has ended now, may have served it, or another host of this job",
        fix="on one host: torchrun --standalone (or --rdzv-endpoint localhost:0); on several: give each job "
        "an endpoint with a port of its own, and read how the torchrun on the endpoint's host ended",
        sample="The connection to the C10d store has failed. See inner exception for details.",
        sample_frame=(
            "/v/site-packages/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py",
            "raise RendezvousConnectionError(",
        ),
        near_miss="The connection to the database has failed",
        source="PyTorch 1.9 to 2.13",
    ),
    KnownMistake(
        pattern=r"DDP expects same model across all ranks, but Rank (?P<one>\d+) has (?P<many>\d+)"
        r" params, while rank (?P<two>\d+) has inconsistent (?P<few>\d+) params",
        cause="rank {one} has a model of {many} parameters, and rank {two} one of {few}",
        fix="build the same model on every rank: what differs there (a branch on the rank, a config, a "
        "checkpoint or a version of the code on one host)? Where one has 0, it may have failed first: read "
        "the log of rank {two}; allaboard preflight compares the hosts",
        sample="DDP expects same model across all ranks, but Rank 0 has 128 params, while rank 1 has "
        "inconsistent 0 params.",
        near_miss="DDP has the same model on all ranks",
        source="PyTorch 1.9 to 2.13",
    ),
    KnownMistake(
        pattern=r"Expected to have finished reduction in the prior iteration.{0,200}?training graph has "
        r"changed",
        cause="DDP was told static_graph=True, and this step used other parameters than the first one",
        fix="DistributedDataParallel(..., static_graph=False, find_unused_parameters=True); or let every "
        "step use the same parameters",
        sample="Expected to have finished reduction in the prior iteration before starting a new one. This "
        "error indicates that your training graph has changed in this iteration, e.g., one parameter is "
        "used in first iteration, but then got unused in the second iteration.",
        near_miss="the training graph has changed; compiling again",
        source="PyTorch 1.10 to 2.13",
    ),
    KnownMistake(
        pattern=r"Expected to have finished reduction in the prior iteration",
        cause="some parameters of the model had no part in the loss of the step before, so that DDP waits "
        "for their gradients",
        fix="DistributedDataParallel(..., find_unused_parameters=True) (Trainer: "
        "--ddp_find_unused_parameters true); or let the loss use every output of forward. "
        "TORCH_DISTRIBUTED_DEBUG=DETAIL names the parameters",
        sample="Expected to have finished reduction in the prior iteration before starting a new one. This "
        "error indicates that your module has parameters that were not used in producing loss.",
        near_miss="finished reduction of the metrics in iteration 7",
        source=_SOURCES,
    ),
    KnownMistake(
        pattern=r"parameters that were not used in producing (?:the )?loss returned by",
        cause="some parameters of the model had no part in the loss, so that DDP waits for their gradients",
        fix="Trainer(strategy='ddp_find_unused_parameters_true')   # or let the loss use every output of "
        "forward; TORCH_DISTRIBUTED_DEBUG=DETAIL names the parameters",
        sample="It looks like your LightningModule has parameters that were not used in producing the loss "
        "returned by training_step.",
        near_miss="these parameters were not used in producing the report",
        source="PyTorch Lightning 1.8 to 2.6",
    ),
    KnownMistake(
        pattern=r"WinError 1455\]|paging file is too small",
        cause="Windows had no memory to promise: each process that imports torch asks for gigabytes of it",
        fix="fewer processes (num_workers=0 or 2 in the DataLoader); or enlarge the page file: "
        "SystemPropertiesPerformance, Advanced, Virtual memory",
        sample="[WinError 1455] The paging file is too small for this operation to complete. Error loading "
        '"C:\\\\env\\\\torch\\\\lib\\\\cudnn64_8.dll"',
        near_miss="[WinError 126] The specified module could not be found. Error loading c10.dll",
        source="Windows' own words for ERROR_COMMITMENT_LIMIT; PyTorch 1.7 to 2.13",
    ),
    KnownMistake(
        pattern=r"Tensors must be (?:CUDA and dense|contiguous)"
        r"|tensor[^\n]{0,40} (?:must be on|is on) (?:the )?(?:cpu|CPU)[^\n]{0,60}(?:nccl|NCCL)",
        cause="the collective was given a tensor that the group's backend does not take (nccl: on a GPU, "
        "dense and contiguous)",
        fix="tensor.to(torch.device('cuda', LOCAL_RANK)).contiguous() before this call; or a group for the "
        "CPU too: init_process_group('cpu:gloo,cuda:nccl')",
        sample="Tensors must be CUDA and dense",
        near_miss="Tensors must have the same number of dimensions: got 2 and 3",
        source="PyTorch 1.0 to 2.13",
    ),
    KnownMistake(
        pattern=r"No rendezvous handler for (?P<scheme>\w+)://",
        cause="this build of PyTorch cannot meet at {scheme}://",
        fix="install PyTorch 1.8 or newer: on Windows, versions before meet only at "
        "init_method='file:///C:/tmp/init' (a new file for each run)",
        sample="No rendezvous handler for env://",
        near_miss="No handler for signal env",
        source="PyTorch 1.7 (Windows) to 2.13 (rendezvous.py)",
    ),
    KnownMistake(
        pattern=r"Distributed package doesn't have (?P<backend>MPI|UCC|Gloo|GLOO|XCCL) built in",
        cause="this build of PyTorch has no backend {backend}",
        fix="init_process_group('nccl') on GPUs, or 'gloo' on CPUs: the released builds have these; under "
        "mpirun they need RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (allaboard run sets them)",
        sample="Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch "
        "from source on a host that has MPI installed.",
        near_miss="Distributed package doesn't have NCCL built in",
        source="PyTorch 1.0 to 2.13",
    ),
    KnownMistake(
        pattern=r"unsupported gloo device",
        cause="this build of PyTorch has no transport of gloo for this system, or not the one that "
        "GLOO_DEVICE_TRANSPORT names",
        fix="unset GLOO_DEVICE_TRANSPORT; if it is not set, install another build of PyTorch: python -m "
        "torch.utils.collect_env tells which it is (some for Windows have none: an older one, or WSL)",
        sample="makeDeviceForHostname(): unsupported gloo device",
        near_miss="unsupported device for gloo's allreduce: cuda",
        source="PyTorch 1.6 to 2.13 (GlooDeviceFactory.cpp)",
    ),
    KnownMistake(
        pattern=r"(?P<what>CUBLAS_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED)|CUDNN_STATUS_(?:NOT_INITIALIZED"
        r"|ALLOC_FAILED)|CUSOLVER_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED))",
        cause="the GPU had no memory left for a library of CUDA ({what}), or an error of a kernel before "
        "it shows here",
        fix="nvidia-smi   # on that host: who holds the memory of this GPU? a smaller batch, or one process "
        "a GPU; if it is not full, CUDA_LAUNCH_BLOCKING=1 shows the line that failed (a bad index?)",
        sample="CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        near_miss="CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle, opa, opb, m, n, k)`",
        source="PyTorch 1.0 to 2.13",
    ),
    KnownMistake(
        pattern=r"\S",
        raised_in=r"/torch/distributed/elastic/rendezvous/etcd\w*\.py ",
        cause="torchrun's rendezvous could not use its etcd",
        fix="etcdctl --endpoints=HOST:PORT endpoint health   # --rdzv-endpoint on every host; etcd-v2 asks "
        "for etcd --enable-v2=true, and each run for an --rdzv-id of its own; torchrun needs none: "
        "--rdzv-backend=c10d --rdzv-endpoint=HOST0:29500",
        sample="Key not found : /torch/elastic/store",
        sample_frame=(
            "/v/site-packages/torch/distributed/elastic/rendezvous/etcd_rendezvous.py",
            "return EtcdStore(",
        ),
        near_miss="Key not found : /torch/elastic/store",
        source="PyTorch 1.9 to 2.13 (elastic/rendezvous/etcd_rendezvous.py)",
    ),
    KnownMistake(
        pattern=r"Expected to mark a variable ready only once",
        cause="DDP saw the gradient of one parameter twice in one backward: a layer is run twice, or "
        "checkpointed by re-entrant activation checkpointing",
        fix="torch.utils.checkpoint.checkpoint(..., use_reentrant=False) (Trainer: "
        "gradient_checkpointing_kwargs={{'use_reentrant': False}}); or DDP(..., static_graph=True); and "
        "find_unused_parameters=False",
        sample="Expected to mark a variable ready only once. This error is caused by one of the following "
        "reasons: 1) Use of a module parameter outside the `forward` function.",
        near_miss="Expected to mark the run as ready",
        source=_SOURCES,
    ),
    KnownMistake(
        # Also rpc_timeout=0, which means no limit for a call, and none of time for the start.
        pattern=r"(?:[Ww]ait timeout after 0 ?ms|Timed out waiting 0ms|timeout after 0ms)",
        cause="the timeout that this call was given is 0: it waits for nobody",
        fix="a timeout of some minutes: init_process_group(timeout=timedelta(minutes=10)), "
        "TensorPipeRpcBackendOptions(rpc_timeout=600)   # of 0, init_rpc itself has no time",
        sample="wait timeout after 0ms, keys: /rpc_prefix_0/0/0",
        near_miss="wait timeout after 300000ms, keys: /rpc_prefix_0/0/0",
        source="PyTorch 1.13 to 2.13 (c10d/TCPStore.cpp, distributed/rpc/backend_registry.py)",
    ),
    KnownMistake(
        pattern=r"RPC worker name (?P<name>\S+) is not unique",
        cause="two ranks join RPC under the name {name}, by which the others call them",
        fix='rpc.init_rpc(f"worker{{rank}}", rank=rank, world_size=world_size)',
        sample="RPC worker name worker is not unique. Workers 1 and 0 share the same name.",
        near_miss="the name worker is not unique in this table",
        source="PyTorch 1.5 to 2.13 (distributed/rpc/agent_utils.cpp)",
    ),
    KnownMistake(
        pattern=r"Cannot re-initialize CUDA in forked subprocess",
        cause="the process used CUDA before it forked, and a child uses it too",
        fix="torch.multiprocessing.set_start_method('spawn'), DataLoader(..., "
        "multiprocessing_context='spawn'); or touch no GPU before the fork (move .cuda(), .to(device) and "
        "torch.cuda calls out of the dataset and the module's top)",
        sample="Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
        "use the 'spawn' start method",
        near_miss="CUDA initialized in subprocess 7",
        source="PyTorch 0.4 to 2.13",
    ),
    KnownMistake(
        pattern=r"Unable to find address for: (?P<list>[\^=!][^\s;]*)",
        cause="GLOO_SOCKET_IFNAME is {list}: gloo takes names of interfaces alone, while ^ and = are NCCL's "
        "notation",
        fix="give gloo one name: export GLOO_SOCKET_IFNAME=$(ip -4 route get MASTER_IP | grep -oP "
        "'dev \\K\\S+'); NCCL_SOCKET_IFNAME may keep its ^ list",
        sample="[enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. "
        "Unable to find address for: ^lo,docker",
        near_miss="[enforce fail at device.cc:84] Unable to find address of the printer: ^lo",
        source="gloo in PyTorch 1.5 to 2.13",
    ),
    KnownMistake(
        pattern=r"Unable to find address for: (?P<address>\d{1,3}(?:\.\d{1,3}){3})",
        cause="GLOO_SOCKET_IFNAME is {address}: gloo takes the name of an interface, not an address",
        fix="ip -br address   # the name of the interface that has {address}: export GLOO_SOCKET_IFNAME=NAME",
        sample="ifa != nullptr. Unable to find address for: 10.4.0.17",
        near_miss="Unable to find the address: 10.4.0.17",
        source="gloo in PyTorch 1.5 to 2.13",
    ),
    KnownMistake(
        pattern=r"'(?P<wrapper>DistributedDataParallel|FullyShardedDataParallel|DataParallel)' object has no "
        r"attribute '(?P<name>_[a-z]\w+)'",
        cause="{wrapper} of this PyTorch has no {name}: a method of its own, which other versions have",
        fix="pip show torch   # the version that this program was written for, or a newer release of the "
        "program; grep -rn {name} .   # where it is called",
        sample="'DistributedDataParallel' object has no attribute '_sync_params_and_buffers'",
        near_miss="'Net' object has no attribute '_sync_params_and_buffers'",
        source="PyTorch 1.4 to 2.13",
    ),
    KnownMistake(
        pattern=r"'(?P<wrapper>DistributedDataParallel|DataParallel)' object has no attribute "
        r"'(?P<name>\w+)'",
        cause="the model is wrapped, and the wrapper has no {name}: the model itself is its .module",
        fix="model.module.{name}   # or keep a name for the model from before it was wrapped",
        sample="'DistributedDataParallel' object has no attribute 'generate'",
        near_miss="'Net' object has no attribute 'generate'",
        source="PyTorch 0.4 to 2.13",
    ),
    KnownMistake(
        pattern=r"sampler option is mutually exclusive with shuffle",
        cause="a DataLoader cannot shuffle beside a sampler that decides the order",
        fix="DataLoader(..., sampler=DistributedSampler(dataset, shuffle=True)) without shuffle=True, and "
        "sampler.set_epoch(epoch) before each epoch",
        sample="sampler option is mutually exclusive with shuffle",
        near_miss="options verbose and quiet are mutually exclusive",
        source="PyTorch 0.4 to 2.13",
    ),
    KnownMistake(
        pattern=r"DistributedDataParallel device_ids and output_device arguments only work with "
        r"single-device.{0,120}?but got device_ids (?P<ids>\[[^\]]{0,60}\])",
        cause="DDP was given device_ids {ids}, and the model is not on that one GPU",
        fix="model.to(local_rank) before DDP(model, device_ids=[local_rank]); on CPUs, or with a model that "
        "spans GPUs (device_map='auto'), no device_ids",
        sample="DistributedDataParallel device_ids and output_device arguments only work with single-device/"
        "multiple-device GPU modules or CPU modules, but got device_ids [1], output_device 1, and module "
        "parameters {device(type='cpu')}.",
        near_miss="arguments only work with single-device modules",
        source="PyTorch 1.8 to 2.13",
    ),
    KnownMistake(
        pattern=r"DistributedDataParallel is not needed when a module doesn't have any parameters? that "
        r"requires? a gradient",
        cause="no parameter of the model requires a gradient, so that DDP has nothing to do",
        fix="wrap the model after its parameters are set to train (requires_grad_(True), adapters added), or "
        "do not wrap a frozen one",
        sample="DistributedDataParallel is not needed when a module doesn't have any parameters that require "
        "a gradient.",
        near_miss="element 0 of tensors does not require grad and does not have a grad_fn",
        source="PyTorch 1.1 to 2.13",
    ),
    KnownMistake(
        pattern=r"Must flatten tensors with (?:the same|uniform) dtype but got (?P<one>\S+) and "
        r"(?P<two>\S+)",
        cause="FSDP makes one flat tensor of a unit's parameters, and these have {one} and {two}",
        fix="model.to(torch.bfloat16) (adapters of PEFT too) before FSDP, and "
        "mixed_precision=MixedPrecision(...) for the rest; or wrap the parts of another dtype as units of "
        "their own; or fully_shard (FSDP2)",
        sample="Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32",
        near_miss="expected tensors with uniform dtype in this batch",
        source="PyTorch 1.12 to 2.13",
    ),
    KnownMistake(
        pattern=r"Must flatten tensors with uniform `?requires_grad`? when `?use_orig_params=False`?"
        r"|Must flatten tensors with the same `?requires_grad`?",
        cause="FSDP makes one flat tensor of a unit's parameters, of which some are frozen and some are not",
        fix="FSDP(..., use_orig_params=True) (accelerate: fsdp_use_orig_params: true)",
        sample="Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`",
        near_miss="tensor does not require grad",
        source="PyTorch 2.0 to 2.13",
    ),
    KnownMistake(
        pattern=r"DDPOptimizer backend: Found a higher order op in the graph",
        cause="torch.compile splits the graph of a DDP model, and cannot where it has activation "
        "checkpointing or control flow",
        fix="torch._dynamo.config.optimize_ddp = False before torch.compile (or 'python_reducer')",
        sample="backend='compile_fn' raised:\nNotImplementedError: DDPOptimizer backend: Found a higher "
        "order op in the graph. This is not supported.",
        near_miss="Found a higher order op in the graph",
        source="PyTorch 2.1 to 2.13",
    ),
    KnownMistake(
        pattern=r"SyncBatchNorm (?:expected input tensor to be on (?:GPU|CUDA)"
        r"|layers only work with (?:GPU|CUDA) modules)",
        cause="the model has SyncBatchNorm, and its input is on the CPU: this layer works on GPUs only",
        fix="model.to(local_rank), and the batch too; on CPUs leave convert_sync_batchnorm out",
        sample="SyncBatchNorm expected input tensor to be on GPU",
        near_miss="BatchNorm expected input tensor of 4 dimensions",
        source="PyTorch 1.1 to 2.13",
    ),
    KnownMistake(
        pattern=r"error: unrecognized arguments: [^\n]{0,200}--local[-_]rank\b",
        cause="torch.distributed.launch gives the script --local-rank (--local_rank before PyTorch 2.0), "
        "which it does not take",
        fix="torchrun SCRIPT, and int(os.environ['LOCAL_RANK']) in it; or "
        "parser.add_argument('--local-rank', '--local_rank', type=int, default=0)",
        sample="train.py: error: unrecognized arguments: --local-rank=1",
        near_miss="train.py: error: unrecognized arguments: --local-files-only",
        source="PyTorch 1.0 to 2.13 (launch.py), Python's argparse",
    ),
    KnownMistake(
        pattern=r"(?P<what>(?:Check batch related parameters\. )?train_batch_size is not equal to "
        r"micro_batch_per_gpu \* gradient_acc_step \* world_size (?P<have>\d+) != (?P<micro>\d+)"
        r" \* (?P<acc>\d+) \* (?P<size>\d+))",
        cause="the batch sizes of DeepSpeed's configuration do not fit the {size} processes: {have} is not "
        "{micro} x {acc} x {size}",
        fix="let train_batch_size be micro batch x gradient accumulation x world size ('auto' with the "
        "Trainer or "
        "accelerate); a world size of 1 here, with several GPUs: the processes did not find each other",
        sample="Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
        "gradient_acc_step * world_size 256 != 2 * 18 * 7",
        near_miss="train_batch_size is 256, micro_batch_per_gpu 2",
        source="DeepSpeed 0.3 to 0.18 (runtime/config.py)",
    ),
    KnownMistake(
        pattern=r"(?P<what>(?:Rank (?P<rank>\d+): )?found (?:NaN|Inf)[^\n]{0,20} in local grad "
        r"norm[^\n]{0,120})",
        cause="its own gradients were not finite before any communication: {what}",
        fix="look at the batch of that step on that rank: a lower learning rate, the checkpoint before, "
        "--no-check-for-nan-in-loss-and-grad for one run shows whether it passes; if it is always the "
        "same GPU, run without that node",
        sample="Rank 3: found NaN in local grad norm in backward pass before data-parallel communication "
        "collective. Device: 3, node: n7",
        near_miss="found NaN in the validation loss",
        source="Megatron-LM 0.5 to 0.15 (distributed, rerun_state_machine)",
    ),
    KnownMistake(
        pattern=rf"(?i:(?P<what>[^\n]{{0,120}}\bbut (?:the |got )?(?:{_SIZES})(?: is| was|:)? ?=? "
        rf"?\d[^\n]{{0,60}}))",
        cause="it was started with another number of processes than it is made for: {what}",
        fix="start as many as the message asks for (--nproc-per-node, --nnodes), or convert the "
        "checkpoint or the configuration to the number that there is",
        sample="Loading a checkpoint for MP=1 but world size is 4",
        near_miss="the queue holds 4 batches, but the world map is 8 tiles wide",
        source="llama 1 to 3 (generation.py), and checks of the same form",
    ),
    KnownMistake(
        # Megatron's parallel_state, its copies in fairscale, vLLM, SGLang and NeMo; DeepSpeed's groups.
        pattern=rf"(?i:(?P<what>{_GROUP}[^\n]{{0,40}}?(?:(?:is|are) not initialized\b|not initialized!"
        r"|must be initiali[sz]ed\b)))",
        cause="asks for ranks that this process has not joined yet: {what}",
        fix="make the groups first, in every process and before the model: dist.init_process_group(), "
        "then the library's own (initialize_model_parallel, init_distributed_environment, "
        "deepspeed.init_distributed)   # if that was called: in this process, too, and in the same copy of "
        "the library? python -c 'import megatron; print(megatron.__file__)'; pip list | grep -iE "
        "'megatron|vllm|fairscale'",
        sample="tensor model parallel group is not initialized",
        near_miss="tensor model parallel group is initialized with 8 ranks",
        source="Megatron-LM 2.0 to 0.14, fairscale 0.4, vLLM 0.2 to 0.33, SGLang 0.3 to 0.5, DeepSpeed "
        "0.6 to 0.17",
    ),
    KnownMistake(
        pattern=rf"(?i:(?P<what>{_GROUP}[^\n]{{0,40}}? (?:is|are) already initialized\b))",
        cause="makes its groups a second time in one process: {what}",
        fix="read the exception above, if there is one: an engine that had failed was made again; else "
        "make one engine a process, and end it before the next (destroy_model_parallel(), "
        "dist.destroy_process_group())",
        sample="tensor model parallel group is already initialized",
        near_miss="tensor model parallel group is initialized",
        source="Megatron-LM 2.0 to 0.14, fairscale 0.4, vLLM 0.2 to 0.33",
    ),
    KnownMistake(
        pattern=rf"(?i:(?P<what>[^\n]{{0,80}}\b(?:{_MODEL_SIZES})\b[^\n]{{0,80}}?(?:{_DIFFER})[^\n]{{0,120}}))",
        raised_in=_SIZES_RAISED_IN,
        cause="sizes of the model or of the batch do not divide among the ranks: {what}",
        fix="change one of the two that the message names, on all ranks alike: layers among pipeline stages "
        "(--num-layers, --pipeline-model-parallel-size), heads and hidden size among tensor-parallel ranks, "
        "a sequence padded to a multiple of the tensor-parallel (and twice the context-parallel) size, a "
        "global batch = micro batch x data-parallel size x N",
        sample="num_layers should be divisible by pipeline_model_parallel_size",
        sample_frame=(
            "/v/dist-packages/megatron/core/transformer/transformer_block.py",
            "num_layers % config.pipeline_model_parallel_size == 0",
        ),
        near_miss="num_layers of the map exceed the screen",
        source="Megatron-LM, NeMo, verl, vLLM of 2020 to 2026",
    ),
    KnownMistake(
        pattern=r"Assertion failed: (?P<what>mpiSize == tp \* pp[^\n(]{0,40}?)(?= ?\(|$)",
        cause="the engine was built for tensor x pipeline parallel ranks, and another number of MPI's "
        "processes was started: {what}",
        fix="mpirun -n TPxPP python SCRIPT   # as many processes as the engine has ranks; or build the "
        "engine for as many as run",
        sample="[TensorRT-LLM][ERROR] Assertion failed: mpiSize == tp * pp (worldConfig.cpp:89)",
        near_miss="Assertion failed: size == 4 (worldConfig.cpp:89)",
        source="TensorRT-LLM 0.5 to 0.20 (runtime/worldConfig.cpp)",
    ),
    KnownMistake(
        # The checks of Megatron, DeepSpeed, vLLM, SGLang, ColossalAI and NeMo of what they were started with.
        pattern=_SIZES_DIFFER,
        raised_in=_SIZES_RAISED_IN,
        cause="the numbers that it was started with do not fit each other: {what}",
        fix="count: nodes x GPUs a node is the world size, and a multiple of the tensor x pipeline x context "
        "parallel sizes; change --nnodes and --nproc-per-node, or these sizes (of a mesh of JAX: its "
        "ICI and DCN parallelism); the same number of GPUs on every node (nvidia-smi -L, "
        "CUDA_VISIBLE_DEVICES)",
        sample="world size (8) is not divisible by total_model_size (total_model_size=6)",
        sample_frame=(
            "/work/Megatron-LM/megatron/training/arguments.py",
            "assert args.world_size % total_model_size",
        ),
        near_miss="world size of the map exceeds the screen",
        source="Megatron-LM, DeepSpeed, vLLM and SGLang of 2020 to 2026",
    ),
    KnownMistake(
        pattern=r"disagreement between rank0 and rank(?P<rank>\d+): rank0: (?P<one>\[[^\]]{0,80}\])"
        r", rank\d+: (?P<two>\[[^\]]{0,80}\])",
        cause="ranks 0 and {rank} need different parameters of a ZeRO-3 model at the same time: they do not "
        "run the same layers in the same order",
        fix="let every rank run the same forward, as often, in the same order: no branch on rank or data in "
        "it (mixture of experts: deepspeed.utils.set_z3_leaf_modules), generate with synced_gpus=True, and "
        "the same number of batches",
        sample="disagreement between rank0 and rank1: rank0: [292], rank1: [0, 1, 2]",
        near_miss="disagreement between raters 0 and 1",
        source="DeepSpeed 0.6 to 0.18 (runtime/zero/utils.py)",
    ),
    KnownMistake(
        pattern=r"module 'torch\.(?:_C\._)?distributed(?:_c10d)?' has no attribute '(?P<name>\w+)'",
        cause="this build of PyTorch has no {name}: it was built without distributed, or is older than the "
        "script",
        fix='python -c "import torch; print(torch.__version__, torch.distributed.is_available())"   # False: '
        "install a build with distributed",
        sample="module 'torch.distributed' has no attribute 'ReduceOp'",
        near_miss="module 'mylib.distributed' has no attribute 'ReduceOp'",
        source="PyTorch 1.0 to 2.13, on Jetson, macOS and Windows",
    ),
)
"""Mistakes, the more special ones first."""
