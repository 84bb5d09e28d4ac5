"""From routes to the document: one operation for each method of each described route."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from viewer.access.routes import GuardedRoute
from viewer.http.describing import Described, Failure, Parameter
from viewer.openapi.failures import failures_of
from viewer.openapi.schemas import Schemas, path_type, wrapped

MEDIA_TYPE = "application/json"
ABOUT = (
    'Every JSON answer is `{"code", "message", "data"}`: `code` is stable, and `"ok"` on success; `message` is one '
    "line for people. Times are RFC 3339 in UTC with microseconds. Another method than those of a path answers 405 "
    "`method_not_allowed` and names them in `Allow`; `HEAD` answers as `GET` does, without the body."
)
NOT_MODIFIED = "Unchanged since the answer whose tag was sent."
IF_NONE_MATCH = Parameter("If-None-Match", str, "The tag of an earlier answer.", place="header")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one route."""

    method: str
    route: GuardedRoute
    described: Described


def operations(routes: Iterable[GuardedRoute]) -> Iterator[Operation]:
    """Those of the routes that are described."""
    for route in routes:
        for method in sorted((route.methods or {"GET"}) - {"HEAD"}):
            if route.described is not None:
                yield Operation(method, route, route.described)


def document_of(routes: Iterable[GuardedRoute], *, version: str, root_path: str = "") -> Json:
    """The description of the routes."""
    found = list(operations(routes))
    schemas = Schemas(_types(found))
    paths: defaultdict[str, Json] = defaultdict(dict)
    for operation in found:
        paths[operation.route.path][operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "tachograph", "version": version, "description": ABOUT},
        "servers": [{"url": root_path or "/"}],
        "paths": dict(paths),
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "An access token."}},
        },
    }


def _types(found: Iterable[Operation]) -> Iterator[Any]:
    """Every type that the document needs a schema of."""
    for operation in found:
        described = operation.described
        yield described.answer
        yield described.body
        yield from (parameter.of for parameter in _parameters(described))
        yield from (path_type(name) for name in operation.route.param_convertors)
        yield from (failure.data for failure in _failures(operation))


def _operation(operation: Operation, schemas: Schemas) -> Json:
    route, described = operation.route, operation.described
    said = inspect.getdoc(route.endpoint) or ""
    summary, _, more = said.partition("\n\n")
    body: Json = {"operationId": route.endpoint.__qualname__, "summary": " ".join(summary.split())}
    if more:
        body["description"] = more
    in_path = [Parameter(name, path_type(name), "", required=True) for name in route.param_convertors]
    parameters = [_parameter(parameter, "path", schemas) for parameter in in_path]
    parameters += [_parameter(parameter, parameter.place, schemas) for parameter in _parameters(described)]
    if parameters:
        body["parameters"] = parameters
    if described.body is not None:
        content = {MEDIA_TYPE: {"schema": schemas.of(described.body)}}
        body["requestBody"] = {"required": not described.body_may_be_empty, "content": content}
    body["responses"] = _answers(described, schemas) | _failed(operation, schemas)
    # Without access tokens in use everybody may; with them, whoever has the right.
    body["security"] = [] if route.needs is None else [{"bearer": [route.needs.value]}, {}]
    return body


def _parameters(described: Described) -> tuple[Parameter, ...]:
    return (*described.query, IF_NONE_MATCH) if described.has_tag else described.query


def _parameter(parameter: Parameter, place: str, schemas: Schemas) -> Json:
    body: Json = {"name": parameter.name, "in": place, "required": parameter.required}
    body["schema"] = schemas.of(parameter.of)
    return {**body, "description": parameter.about} if parameter.about else body


def _answers(described: Described, schemas: Schemas) -> Json:
    content: Json = {}
    if described.answer is not None:
        content[MEDIA_TYPE] = {"schema": wrapped({"const": "ok"}, schemas.of(described.answer))}
    for media_type in described.other_forms:
        content[media_type] = {"schema": {}}
    about = " ".join(described.other_forms.values()) or HTTPStatus(described.status).phrase
    answer: Json = {"description": about, "content": content}
    headers = {name: {"schema": {"type": "string"}} for name in _headers(described)}
    if headers:
        answer["headers"] = headers
    answers: Json = {str(described.status): answer}
    if described.has_tag:
        answers["304"] = {"description": NOT_MODIFIED}
    return answers | {str(status): {"description": meaning} for status, meaning in described.empty.items()}


def _headers(described: Described) -> list[str]:
    return [*(["ETag"] if described.has_tag else []), *(["Link"] if described.pages else []), *described.headers]


def _failures(operation: Operation) -> Iterator[Failure]:
    return failures_of(operation.route, operation.method, operation.described)


def _failed(operation: Operation, schemas: Schemas) -> Json:
    """The failures, by status; each code of a status has its line."""
    by_status: defaultdict[int, list[Failure]] = defaultdict(list)
    for failure in _failures(operation):
        by_status[failure.status].append(failure)
    return {str(status): _failure(by_status[status], schemas) for status in sorted(by_status)}


def _failure(failures: list[Failure], schemas: Schemas) -> Json:
    about = "\n".join(f"- `{failure.code}`: {failure.about}" for failure in failures)
    plain = [failure.code for failure in failures if failure.data is None]
    schema = [wrapped({"enum": plain}, {"type": "null"})] if plain else []
    schema += [wrapped({"const": one.code}, schemas.of(one.data)) for one in failures if one.data is not None]
    return {
        "description": about,
        "content": {MEDIA_TYPE: {"schema": schema[0] if len(schema) == 1 else {"oneOf": schema}}},
    }
