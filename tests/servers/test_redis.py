"""The private Redis: the system's, or the one in a locked package that stands in for it."""

import socket

import pytest

from tests.servers import redis as servers


def said(server, command):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(f"{command}\r\n".encode())
        return connection.recv(100)


@pytest.mark.parametrize("has_system", [True, False], ids=["what there is", "the package's"])
def test_it_starts_anew_with_nothing_and_is_gone_once_it_was_stopped(tmp_path, monkeypatch, has_system):
    if not has_system:
        monkeypatch.setattr("tests.servers.redis.shutil.which", lambda name: None)
    with servers.redis_running(tmp_path) as server:
        assert said(server, "SET kept 1") == b"+OK\r\n"
        server.restart()
        assert said(server, "GET kept") == b"$-1\r\n"
    with pytest.raises(ConnectionRefusedError):
        said(server, "PING")
