"""The protocol of Label Studio for models: health, setup, predict and webhook, as JSON."""

import contextlib
import hmac
from collections.abc import Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphuq.errors import GraphuqError, require
from graphuq.labelling.guard import has_length, host_is_local
from graphuq.labelling.json_requests import error_answer, json_answer, object_of
from graphuq.labelling.label_studio.config import Choices, parse_config
from graphuq.labelling.label_studio.exchange import label_of, prediction, user_of
from graphuq.labelling.session import Session

MAX_BODY = 50_000_000  # bytes: Label Studio sends tasks in batches
SETUP_WAIT_S = 2.0  # Label Studio waits for 3 s
WAIT_S = 60.0  # for the posterior of the latest labels; Label Studio waits for 100 s


class Backend:
    """Answers of a session to Label Studio. Each method gets and returns decoded JSON.

    Parameters
    ----------
    session : Session
    keys : sequence of str, length N
        Value that names each item in the data of a task.
    field : str, optional
        Field of that value; by default the field that the label configuration shows.
    """

    def __init__(self, session: Session, keys: Sequence[str], field: str | None = None) -> None:
        self._session, self._field = session, field
        self._rows = {key: row for row, key in enumerate(keys)}
        self._choices: Choices | None = None
        self._row_of: dict[Any, tuple[int, str]] = {}  # rows and users of annotations

    @property
    def version(self) -> str:
        """Name of the latest posterior."""
        return f"graphuq-{self._session.latest[0].version}"

    def health(self, body: dict[str, Any]) -> dict[str, Any]:
        """Tell that the server runs."""
        return {"status": "UP", "model_class": "graphuq"}

    def setup(self, body: dict[str, Any]) -> dict[str, Any]:
        """Take the label configuration of a project, and name the latest posterior.

        Label Studio asks again only for predictions of a name that it does not have.
        """
        self._choices = parse_config(str(body.get("schema") or ""))
        with contextlib.suppress(GraphuqError):  # a posterior in the making is waited for
            self._session.wait_until_current(SETUP_WAIT_S)
        return {"model_version": self.version}

    def versions(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the names of the posteriors that can be asked for: the latest one."""
        return {"versions": [self.version]}

    def predict(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a prediction for each task, by the posterior of all labels.

        ``score`` orders the tasks for Label Studio's uncertainty sampling, lowest first. Tasks that
        graphuq would label next have scores below 1 / K, in their order. The score of another task
        is the probability of its likeliest class, which is never below 1 / K. The probability is in
        the ``score`` of the result in any case.
        """
        config, given = body.get("label_config"), body.get("tasks")
        choices = parse_config(str(config)) if config else self._choices
        require(choices is not None, "label_config", "not given", "call setup, or send it")
        fits = isinstance(given, list) and all(isinstance(task, dict) for task in given)
        require(fits, "tasks", "no list of objects", "send tasks with their data")
        assert choices is not None
        assert isinstance(given, list)
        snapshot = self._session.wait_until_current(WAIT_S)
        place = {int(row): k for k, row in enumerate(snapshot.queue)}
        version, results = f"graphuq-{snapshot.version}", []
        for task in given:
            row = self._row(task, choices)
            p = None if row is None else snapshot.probabilities
            n_classes = max(1, len(snapshot.classes))
            score = 1.0 if row is None or p is None else float(p[row].max())
            if row in place:
                score = place[row] / (len(place) * n_classes)
            if p is None:
                results.append({"model_version": version, "score": score, "result": []})
            else:
                found = prediction(choices, snapshot.classes, p[row], score, version)
                results.append(found)
        return {"results": results, "model_version": version}

    def webhook(self, body: dict[str, Any]) -> dict[str, Any]:
        """Store the annotation that Label Studio tells of; other news is ignored."""
        action, project = body.get("action"), body.get("project")
        config = project.get("label_config") if isinstance(project, dict) else None
        if self._choices is None and config:  # this server was started again
            self._choices = parse_config(str(config))
        if action in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED"):
            self._store(_object(body, "task"), _object(body, "annotation"))
        if action == "ANNOTATIONS_DELETED":
            deleted = body.get("annotations") or []
            fits = isinstance(deleted, list) and all(isinstance(one, dict) for one in deleted)
            require(fits, "annotations", "no list of objects", "send what was deleted")
            for annotation in deleted:
                found = self._row_of.pop(_id_of(annotation), None)
                if found is not None:
                    self._session.write(found[1], {found[0]: None})
        return {"status": "ok"}

    def train(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return nothing to wait for: the posterior follows the labels by itself."""
        return {}

    def _store(self, task: dict[str, Any], annotation: dict[str, Any]) -> None:
        row = self._row(task, self._choices)
        if row is None:
            return
        label = label_of(annotation, self._choices.from_name if self._choices else None)
        user = user_of(annotation)
        if label is None:  # skipped, or emptied
            if self._row_of.pop(_id_of(annotation), None) is not None:
                self._session.write(user, {row: None})
            return
        self._row_of[_id_of(annotation)] = row, user
        snapshot = self._session.latest[0]
        shown = {}
        if snapshot.probabilities is not None and label in snapshot.classes:
            shown[row] = float(snapshot.probabilities[row, snapshot.classes.index(label)])
        self._session.label(user, [row], label, shown, snapshot.version)

    def _row(self, task: dict[str, Any], choices: Choices | None) -> int | None:
        """Return the row of the item of a task, or None if it is unknown."""
        field = self._field or (None if choices is None else choices.field)
        data = task.get("data")
        value = data.get(field) if isinstance(data, dict) else None
        return self._rows.get(str(value))


def application(backend: Backend, token: str) -> Starlette:
    """Return the application of a backend, whose addresses begin with a secret token.

    Label Studio puts the same beginning before each address, and sends no cookie.
    """
    acts = (backend.setup, backend.predict, backend.webhook, backend.train)
    reads = (backend.health, backend.versions)
    routes = [
        *(Route(f"/{{token}}/{a.__name__}", _endpoint(a, token), methods=["POST"]) for a in acts),
        *(Route(f"/{{token}}/{read.__name__}", _endpoint(read, token)) for read in reads),
    ]
    return Starlette(routes=routes, exception_handlers={GraphuqError: error_answer})


def _endpoint(
    act: Callable[[dict[str, Any]], dict[str, Any]], token: str
) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        if not host_is_local(request.headers):
            return json_answer({"error": "This server is only for its own machine."}, 421)
        given = request.path_params["token"].encode("utf-8", "replace")
        if not hmac.compare_digest(given, token.encode()):
            return json_answer({"error": "Use the address that graphuq printed."}, 404)
        body: Any = {}
        if request.method == "POST":
            headers = request.headers
            if not has_length(headers) or int(headers["content-length"]) > MAX_BODY:
                return json_answer({"error": f"At most {MAX_BODY} bytes, with a length."}, 413)
            body = await object_of(request)
        return json_answer(await run_in_threadpool(act, body))

    return endpoint


def _object(body: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object in another one, empty if there is none."""
    found = body.get(name) or {}
    require(isinstance(found, dict), name, type(found).__name__, "send an object")
    return dict(found)


def _id_of(annotation: dict[str, Any]) -> str:
    return str(annotation.get("id"))[:100]
