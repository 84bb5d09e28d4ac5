"""JSON schemas of the types that bodies are made of; each class has its place among the components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from harness.events.base import Id
from viewer.http.describing import Position

REF_TEMPLATE = "#/components/schemas/{model}"
_DOCUMENTED = ConfigDict(use_attribute_docstrings=True)

Json = dict[str, Any]


class Schemas:
    """The schemas of some types, made together, so that what they share is there once."""

    def __init__(self, types: Iterable[Any]) -> None:
        wanted = {repr(one): one for one in types if one is not None}
        inputs = [(name, _mode(one), _adapter(one)) for name, one in wanted.items()]
        found, shared = TypeAdapter.json_schemas(inputs, ref_template=REF_TEMPLATE, schema_generator=_Exact)
        self.components: Json = shared.get("$defs", {})
        self._of: dict[str, Json] = {name: schema["items"] for (name, _), schema in found.items()}

    def of(self, one: Any) -> Json:
        """The schema of a type that was named at the beginning."""
        return self._of[repr(one)]


class _Exact(GenerateJsonSchema):
    """A body has the members of its type, and no other; their names are titles enough."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def typed_dict_schema(self, schema: Any) -> Json:
        described: Json = super().typed_dict_schema(schema)
        return {**described, "additionalProperties": False}


def wrapped(code: Json, data: Json) -> Json:
    """The one shape of every answer."""
    return {
        "type": "object",
        "properties": {"code": code, "message": {"type": "string"}, "data": data},
        "required": ["code", "message", "data"],
        "additionalProperties": False,
    }


def path_type(name: str) -> Any:
    """What stands at a place of a path."""
    return Position if name == "seq" else Id


def _mode(one: Any) -> JsonSchemaMode:
    """A body that is sent is described as what is accepted, an answer as what is given."""
    return "validation" if _is_model(one) else "serialization"


def _adapter(one: Any) -> TypeAdapter[Any]:
    # A list takes settings, and hands them on to the types in it; one of those alone would refuse them.
    return TypeAdapter(list[one], config=_DOCUMENTED)


def _is_model(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, BaseModel)
