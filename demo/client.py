"""A client of the demo's HTTP API, as any other program would be: it knows only what the answers say."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import orjson

from demo.errors import DemoError

ANSWER_TIMEOUT_S: Final = 120.0

Json = dict[str, Any]


class RequestFailed(DemoError):
    """The app answered with an error, or not at all."""

    code = "request_failed"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, and the run that answered it."""

    question: str
    session_id: str
    run_id: str
    answer: str


class Client:
    """Talks to one app; close it, or use it as a context."""

    def __init__(self, url: str) -> None:
        self.url = url
        # This machine's own server: no proxy stands between.
        self._http = httpx2.Client(base_url=url, timeout=ANSWER_TIMEOUT_S, trust_env=False)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def chat(self, question: str, session_id: str | None = None) -> Asked:
        """Ask a question; without a session the answer brings a new one."""
        body = {"question": question} if session_id is None else {"question": question, "sessionId": session_id}
        with _failures():
            data = _data(self._http.post("/api/chat", json=body))
        return Asked(question, data["sessionId"], data["runId"], data["answer"])

    def check_machine(self) -> Asked:
        """Have the whole machine checked; reads the stream to its end."""
        messages: list[Json] = []
        with _failures(), self._http.stream("POST", "/api/ai_ops", json={}) as response:
            if response.status_code != 200:
                response.read()
                _data(response)
            for event in httpx2.EventSource(response):
                if event.event != "message":
                    raise RequestFailed(f"an event {event.event!r} came where only `message` may")
                messages.append(orjson.loads(event.data))
        last = messages[-1] if messages else {"type": None}
        if last["type"] == "error":
            raise RequestFailed(f"the check of the machine: {last['data']}")
        if not messages or messages[0]["type"] != "metadata" or last["type"] != "done":
            raise RequestFailed("the check of the machine broke off")
        report = "".join(message["data"] for message in messages if message["type"] == "content")
        return Asked("Check of the whole machine", messages[0]["sessionId"], messages[0]["runId"], report)

    def trace(self, session_id: str, run_id: str) -> Json:
        """Exactly that run."""
        with _failures():
            return _data(self._http.get(f"/api/diagnosis/{session_id}/trace", params={"runId": run_id}))

    def trace_page(self, session_id: str, run_id: str) -> str:
        """The address of that run's page."""
        return str(self._http.base_url.copy_with(path="/trace", params={"sessionId": session_id, "runId": run_id}))


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except (httpx2.HTTPError, orjson.JSONDecodeError) as error:
        raise RequestFailed(f"no answer from the app: {type(error).__name__}: {error}") from error


def _data(response: httpx2.Response) -> Json:
    """What the wrapper holds; `RequestFailed` with its code and message for an error (SPEC D14)."""
    wrapped: Json = response.json()
    if response.status_code != 200 or wrapped["code"] != "ok":
        raise RequestFailed(f"the app answers {response.status_code} {wrapped['code']}: {wrapped['message']}")
    data: Json = wrapped["data"]
    return data
