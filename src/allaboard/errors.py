"""The common base of all errors that allaboard raises itself.

AllaboardError
├── UsageError                     the command line asks for something that cannot be done
├── ForeignFolderError             a folder in which others could lead our files elsewhere
├── InvalidRolesError              --ps, -n, --chief and --evaluator make no cluster (ValueError)
├── ConfigurationError             the resolved configuration would not start (ValueError)
├── FormatError                    a text does not follow its format (ValueError)
├── UnsafePickleError              a pickle is torn, too large, or holds more than plain values (ValueError)
├── HostlistError                  a list of hosts that Slurm could not have written
├── UnstatedTaskError              the environment does not say which task this is
├── WorkerStartError               the workers cannot be started
├── NoFreePortError                every port of the range is taken (OSError)
├── RollCallError                  the members of the job did not come together (RuntimeError)
├── MissingInputError              a file or folder to diagnose cannot be read
├── ArchiveError                   an archive of logs cannot be read on
├── NoSuchProcessError             a process to diagnose does not exist
├── HandshakeRefusedError          the leader, or this host, refused the handshake
├── GarbledMessageError            bytes that are no message of the agents' protocol
├── ForgedMessageError             bytes between agents that do not carry the job's proof
├── PeerNamesError                 --tls-names names no host and no fingerprint
├── GpuReadError                   the GPUs cannot be read
├── EndpointError                  a service of the job to diagnose does not answer, or is another one
├── FeedError                      a feed cannot be read, or refuses this client
├── MissingTrackerError            an experiment tracker cannot be used in all of this run
├── LeaseStoreError                the place where the leader's lease is kept cannot be used (OSError)
└── MissingEtcdClientError         the etcd client library is not installed

Each class is defined in the module that raises it. This module imports nothing: the workers are started
before the modules that watch them are loaded, and a user's script imports `RollCallError` with its own start.
"""


class AllaboardError(Exception):
    """Base of every error that allaboard raises itself; its message says what is wrong and what to do."""


def describe_os_error(error: OSError) -> str:
    """Return the system's words for an error, and the file that it is about, if that is known."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {reason}" if isinstance(error.filename, str) else reason
