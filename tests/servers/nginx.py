"""A private nginx: started by whoever runs the tests, on free ports, with every file of its own in one folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.postgres import SEARCHED, wait_until_ready

TIMEOUT_S = 30.0
AROUND = """
daemon off;
{user}
worker_processes 1;
pid {folder}/pid;
error_log stderr;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{servers}
}}
"""


@contextmanager
def nginx_running(servers: str, port: int, folder: Path) -> Iterator[None]:
    """An nginx with these blocks of the `http` level, one of which listens on `port`, until the block is left."""
    program = shutil.which("nginx", path=SEARCHED)
    assert program is not None, "nginx is missing: apt-get install nginx"
    # Root's workers would else be somebody who may not open what the test made.
    user = "user root;" if os.geteuid() == 0 else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(AROUND.format(user=user, folder=folder, servers=servers))
    command = [program, "-e", "stderr", "-p", str(folder), "-c", str(configuration)]
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until_ready(lambda: _answers(port), process, folder / "nginx.log", TIMEOUT_S)
        yield
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
