"""The fields of a form that a page sends, within the bounds that all bodies have."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from harness.errors import InvalidInput
from viewer.http.json_body import read_bytes, require_media_type

MEDIA_TYPE = "application/x-www-form-urlencoded"
FIELDS_MAX = 20


async def read_form(request: Request) -> dict[str, str]:
    """Every field as it was sent, none twice; `BadBody` for another media type, `InvalidInput` for what is no form."""
    require_media_type(request, MEDIA_TYPE)
    data = await read_bytes(request)
    try:
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:
        raise InvalidInput("body", "is not a form") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InvalidInput("body", "names a field twice")
    return fields


async def read_confirmed(request: Request) -> dict[str, str]:
    """The same of a form whose sender has to say that it is meant."""
    fields = await read_form(request)
    if fields.get("confirm") != "yes":
        raise InvalidInput("confirm", "must be yes")
    return fields
