"""A real server on a real socket, whose answers a test decides and whose requests it counts."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """Connections that may wait; with fewer, clients at once would be turned away."""


class Answers:
    """Gives its answers in turn, the last one for ever, and keeps the path of every request, and what was posted.

    An answer is a status and what follows it; a status of 0 hangs up instead.
    """

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers) or [(500, {"error": {"message": "no", "type": "x"}})]
        self.headers: dict[str, str] = {}
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        self._lock = threading.Lock()
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                served.bodies.append(self.rfile.read(int(self.headers["content-length"] or 0)))
                self.answer()

            def do_GET(self) -> None:
                self.answer()

            def answer(self) -> None:
                status, answer = served.next_answer(self.path)
                if status == 0:
                    self.close_connection = True
                    return
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response_only(status)
                length = {"content-type": "application/json", "content-length": str(len(body))}
                for name, value in (length | served.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None: ...

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def next_answer(self, path: str) -> tuple[int, Any]:
        with self._lock:
            self.paths.append(path)
            return self.answers[min(len(self.paths), len(self.answers)) - 1]

    @property
    def requests(self) -> list[Any]:
        """What was posted, where all of that is JSON."""
        return [json.loads(body) for body in self.bodies]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)


def completion(**message: Any) -> dict[str, Any]:
    """A chat completion as a provider sends it."""
    said = {"role": "assistant", "content": "because"} | message
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "fake-1",
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
