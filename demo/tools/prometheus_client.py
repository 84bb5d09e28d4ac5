"""One question to Prometheus over its HTTP API: bounded in time and size, and each way to fail is an error of its own.

Nothing that is said of a failure holds the address, which may hold a password.
"""

import asyncio
from collections.abc import Mapping
from functools import cache
from ssl import SSLContext
from typing import Any, Literal, TypeVar

import httpx2
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from demo.bounds import PROMETHEUS_ANSWER_BYTES_MAX, PROMETHEUS_TEXT_CHARS_SHOWN, PROMETHEUS_TIMEOUT_S
from demo.tools.errors import PrometheusRefused, PrometheusTimedOut, PrometheusUnreachable, PrometheusUnusable

T = TypeVar("T")

BAD_QUESTION = frozenset({"bad_data", "execution"})
"""Types of error that another question may mend."""
OUT_OF_TIME = frozenset({"timeout", "canceled"})
"""Types of error of a query that took longer than it was given."""


class _Loose(BaseModel):
    """What later versions add is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Envelope(_Loose):
    status: Literal["success", "error"]
    data: Any = None
    error_type: str = Field(default="", alias="errorType")
    error: str = ""


class Series(_Loose):
    """One series, with its value (an instant), its values (a range), or neither (a native histogram)."""

    metric: dict[str, str]
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = Field(default_factory=list)


class QueryData(_Loose):
    """What an expression gives; of a scalar or a string, `result` is one time and one value."""

    result_type: Literal["vector", "matrix", "scalar", "string"] = Field(alias="resultType")
    result: list[Series] | tuple[float, str]

    @property
    def series(self) -> list[Series]:
        """A scalar or string is a series without labels."""
        return self.result if isinstance(self.result, list) else [Series(metric={}, value=self.result)]


class ActiveAlert(_Loose):
    """An alert as Prometheus tells of it."""

    state: str
    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)
    active_at: str = Field(default="", alias="activeAt")
    value: str = ""


class AlertsData(_Loose):
    """All that are active."""

    alerts: list[ActiveAlert]


async def ask(url: str, path: str, data: type[T], **parameters: str | int | float) -> T:
    """The data of the answer to `GET {url}/api/v1/{path}`."""
    try:
        async with asyncio.timeout(PROMETHEUS_TIMEOUT_S):
            body = await _read(f"{url.rstrip('/')}/api/v1/{path}", parameters)
    except (TimeoutError, httpx2.TimeoutException):
        raise PrometheusTimedOut(
            f"Prometheus gave no answer within {PROMETHEUS_TIMEOUT_S:.0f} s; ask for less"
        ) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise PrometheusUnreachable(f"Prometheus cannot be reached: {type(error).__name__}") from None
    try:
        envelope = _Envelope.model_validate_json(body)
        if envelope.status == "success":
            return TypeAdapter(data).validate_python(envelope.data)
    except ValidationError:
        raise PrometheusUnusable("what answers there does not speak as Prometheus does") from None
    said = f"{envelope.error_type}: {envelope.error}"[:PROMETHEUS_TEXT_CHARS_SHOWN]
    if envelope.error_type in OUT_OF_TIME:
        raise PrometheusTimedOut(f"Prometheus gave the query up ({said}); ask for less")
    hint = "; mend the expression" if envelope.error_type in BAD_QUESTION else ""
    raise PrometheusRefused(f"Prometheus answers {said}{hint}")


@cache
def _tls() -> SSLContext:
    """Made once: to read the certificates of the authorities takes longer than most answers."""
    return httpx2.create_ssl_context()


async def _read(url: str, parameters: Mapping[str, str | int | float]) -> bytes:
    """The body, also of an error; redirects are not followed."""
    body = bytearray()
    async with (
        httpx2.AsyncClient(verify=_tls(), timeout=PROMETHEUS_TIMEOUT_S, follow_redirects=False) as client,
        client.stream("GET", url, params=parameters) as response,
    ):
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > PROMETHEUS_ANSWER_BYTES_MAX:
                limit = f"{PROMETHEUS_ANSWER_BYTES_MAX // 1024**2} MiB"
                raise PrometheusUnusable(
                    f"Prometheus answers with more than {limit}; ask for fewer series or less time"
                )
    return bytes(body)
