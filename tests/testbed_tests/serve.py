"""Sends back what it gets, on the given ports of all addresses; prints `listening` first."""

import selectors
import socket
import sys


def main() -> None:
    waiting = selectors.DefaultSelector()
    listeners = [socket.create_server(("", int(port)), backlog=64) for port in sys.argv[1:]]
    for listener in listeners:
        waiting.register(listener, selectors.EVENT_READ)
    print("listening", flush=True)
    while True:
        for key, _ in waiting.select():
            end = key.fileobj
            assert isinstance(end, socket.socket)
            if end in listeners:
                waiting.register(end.accept()[0], selectors.EVENT_READ)
                continue
            try:
                data = end.recv(65536)
                if data:
                    end.settimeout(2)
                    end.sendall(data)
            except OSError:
                data = b""
            if not data:
                waiting.unregister(end)
                end.close()


main()
