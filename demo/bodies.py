"""What the endpoints expect in a body; what is wrong with one is told before anything is made of it."""

from typing import Any

from pydantic import Field, model_validator
from starlette.requests import Request

from demo.bounds import QUESTION_CHARS_MAX
from demo.text import is_blank
from harness import InvalidInput
from harness.ids import check_id
from viewer.http.json_body import Body, JsonBody, read_body

OLDER_NAMES = {"Id": "sessionId", "Question": "question"}


class Asked(JsonBody):
    """What the endpoints have in common: fields may have their older names, each field one of both."""

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, value: dict[str, Any]) -> dict[str, Any]:
        for older, name in OLDER_NAMES.items():
            if older in value and name in value:
                raise InvalidInput(older, f"is the older name of {name}, which is given, too")
        return {OLDER_NAMES.get(name, name): field for name, field in value.items()}


class ChatBody(Asked):
    """`POST /api/chat` and `POST /api/chat_stream`."""

    session_id: str | None = Field(default=None, alias="sessionId")
    question: str


class AiOpsBody(Asked):
    """`POST /api/ai_ops`."""

    session_id: str | None = Field(default=None, alias="sessionId")
    question: str | None = None


class ClearBody(Asked):
    """`POST /api/chat/clear`."""

    session_id: str = Field(alias="sessionId")


async def read_asked(request: Request, shape: type[Body]) -> Body:
    """The body in its shape, its id and question checked; `BadBody` or `InvalidInput` says what is wrong."""
    body = await read_body(request, shape)
    session_id, question = getattr(body, "session_id", None), getattr(body, "question", None)
    if session_id is not None:
        check_id("sessionId", session_id)
    if question is not None:
        _check_question(question)
    return body


def _check_question(question: str) -> None:
    if is_blank(question):
        raise InvalidInput("question", "must not be blank")
    if len(question) > QUESTION_CHARS_MAX:
        raise InvalidInput("question", f"must be at most {QUESTION_CHARS_MAX} characters, not {len(question)}")
