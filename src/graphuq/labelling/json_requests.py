"""Requests and answers in JSON, for the servers of labelling."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from graphuq.errors import InvalidInput, StorageError, require


async def object_of(request: Request) -> dict[str, Any]:
    """Return the object that a request sends.

    Raises
    ------
    InvalidInput
        If it is no JSON, nested too deeply, or no object.
    """
    try:
        found = await request.json()
    except (ValueError, RecursionError):
        raise InvalidInput("body", "no JSON", "send an object") from None
    require(isinstance(found, dict), "body", "no object", "send an object")
    return dict(found)


def json_answer(value: Any, status: int = 200) -> Response:
    """Return an answer as ASCII, which can also hold names of files that are no valid text."""
    return Response(json.dumps(value, allow_nan=False), status, media_type="application/json")


def error_answer(request: Request, error: Exception) -> Response:
    """Answer with the sentence of an error."""
    return json_answer({"error": str(error)}, 500 if isinstance(error, StorageError) else 400)
