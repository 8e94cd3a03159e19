"""Options of srun(1): which of them take the next word for their value.

The lists are those of srun's manual page (Slurm 20.11 to 25.05), with the options that the plug-in pyxis
adds for containers. An option whose value is optional takes it after ``=`` only (getopt_long's rule), so it
is bare here.
"""

from __future__ import annotations

VALUED_OPTIONS = frozenset(
    (
        "account", "acctg_freq", "bb", "bbf", "begin", "cluster_constraint", "clusters", "comment",
        "constraint", "container", "container_id", "core_spec", "cores_per_socket", "cpu_bind", "cpu_freq",
        "cpus_per_gpu", "cpus_per_task", "deadline", "delay_boot", "dependency", "distribution", "epilog",
        "error", "exclude", "export", "export_file", "extra", "extra_node_info", "gid", "gpu_bind",
        "gpu_freq", "gpus", "gpus_per_node", "gpus_per_socket", "gpus_per_task", "gres", "gres_flags",
        "het_group", "hint",
        "input", "job_name", "jobid", "licenses", "mail_type", "mail_user", "mcs_label", "mem", "mem_bind",
        "mem_per_cpu", "mem_per_gpu", "mincpus", "mpi", "msg_timeout", "network", "nodefile", "nodelist",
        "nodes", "ntasks", "ntasks_per_core", "ntasks_per_gpu", "ntasks_per_node", "ntasks_per_socket",
        "oom_kill_step", "open_mode", "output", "pack_group", "partition", "power", "prefer", "priority",
        "profile", "prolog", "qos", "relative", "reservation", "segment", "signal", "slurmd_debug",
        "sockets_per_node", "switches", "task_epilog", "task_prolog", "tasks_per_node", "thread_spec",
        "threads", "threads_per_core", "time", "time_min", "tmp", "treewidth", "tres_bind", "tres_per_task",
        "uid", "wait", "wckey", "chdir",
        # pyxis
        "container_image", "container_mounts", "container_workdir", "container_name", "container_save",
        "container_env",
        *"ABbCcDdeFGiJLMmNnopqrSTtWwx",
    )
)  # fmt: skip
"""Names as `formats.cli_flags` gives them: without dashes in front, ``_`` for ``-``."""
BARE_OPTIONS = frozenset(
    (
        "bcast", "compress", "contiguous", "disable_status", "exact", "exclusive", "hold", "immediate",
        "interactive", "kill_on_bad_exit", "label", "multi_prog", "nice", "no_allocate", "no_kill",
        "overcommit", "overlap", "oversubscribe", "preserve_env", "propagate", "pty", "quiet",
        "quit_on_interrupt", "reboot", "resv_ports", "send_libs", "spread_job", "stepmgr", "test_only",
        "unbuffered", "use_min_nodes", "verbose", "version", "whole", "x11",
        # pyxis
        "container_mount_home", "no_container_mount_home", "container_remap_root",
        "no_container_remap_root", "container_entrypoint", "no_container_entrypoint",
        "container_entrypoint_log", "container_writable", "container_readonly",
        *"EHIKklOQsuvVXZ",
    )
)  # fmt: skip
