"""Connects, sends, expects the same back: `dial.py HOST PORT BYTES SECONDS`; prints what it met."""

import errno
import socket
import sys
import time

NAMES = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "no network",
    errno.ECONNRESET: "reset",
    errno.EPERM: "not permitted",
}


def main() -> str:
    host, port, size, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    began = time.monotonic()
    try:
        end = socket.create_connection((host, port), seconds)
    except socket.gaierror:
        return "no such name"
    except TimeoutError:
        return "silence"
    except OSError as error:
        return NAMES.get(error.errno or 0, str(error))
    with end:
        try:
            end.sendall(b"x" * size)
            left = size
            while left:
                got = end.recv(65536)
                if not got:
                    return "closed"
                left -= len(got)
        except TimeoutError:
            return "silence once connected"
        except OSError as error:
            return NAMES.get(error.errno or 0, str(error)) + " once connected"
    return f"answered {time.monotonic() - began:.3f}"


print(main())
