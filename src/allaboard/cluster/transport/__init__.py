"""Sockets and messages between agents: wire format, handshakes, TLS, etcd."""
