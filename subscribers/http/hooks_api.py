"""The endpoints that list and edit hooks: the five calls of the PRX page, and a few more.

It decides paths, codes and bodies; what an edit does is the store's. Answers are written as they stand in the
page, not through a model: the order of an action's fields is that of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol

import orjson
from fastapi import APIRouter, Body, Header, Request
from starlette.responses import Response

from ..dialects import prx
from ..dialects.base import EventView
from ..hooks.outcome import Outcome
from ..hooks.spec import HookSpec
from ..sources.hook_store import HookStore, Snapshot
from . import samples
from .blocking import Blocking
from .models import HookBody, HookDocument, HookList, ReplacedFile, TestBody, TestOutcome, ToggledHook
from .problems import Problem
from .routing import JsonRoute

IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="Entity tags: of the hook, of all hooks, or `*`; else 412."),
]
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="Entity tags; if one holds, 304.")
]


class Trial(Protocol):
    """Runs hooks to try them out."""

    def run(self, spec: HookSpec, view: EventView) -> Outcome:
        """Run a hook for an event, to its end."""


class HooksApi:
    """What the endpoints need. ``store`` and ``trial`` are None where no workspace was named."""

    def __init__(
        self,
        store: HookStore | None,
        trial: Trial | None,
        edits: Blocking,
        trials: Blocking,
        now_ns: Callable[[], int],
    ) -> None:
        self._store = store
        self.trial = trial
        self.edits = edits
        self.trials = trials
        self.now_ns = now_ns

    @property
    def store(self) -> HookStore:
        """The store; raises :class:`Problem` without a workspace."""
        if self._store is None:
            raise Problem(
                409,
                "no_workspace",
                "no workspace was named, so there are no hooks",
                hint="start with prxbus up --workspace DIR",
            )
        return self._store

    async def test(self, name: str, body: TestBody) -> Response:
        """Run a hook once and tell how it ended."""
        store = self.store
        hook, spec = await self.edits.run(lambda: store.spec(name))
        payload = samples.sample(hook.event) if body.payload is None else body.payload
        view = EventView(
            event=spec.event,
            payload_bytes=orjson.dumps(payload),
            session_id=samples.SESSION_ID if body.session_id is None else body.session_id,
            time_ns=self.now_ns(),
            depth=0,
            id="test",
        )
        trial = self.trial
        assert trial is not None  # there is one where there is a store
        outcome = await self.trials.run(lambda: trial.run(spec, view), spec.timeout_s + spec.grace_s + 10.0)
        return _json(
            {
                "id": hook.id,
                "event": hook.event,
                "status": outcome.status,
                "exit_code": outcome.exit_code,
                "signal": outcome.signal,
                "duration_ms": round(outcome.duration_s * 1e3, 3),
                "stdout": outcome.stdout.text(),
                "stderr": outcome.stderr.text(),
                "reason": outcome.reason,
                "envelope": orjson.Fragment(prx.envelope(view)),
            }
        )


def hooks_router(api: HooksApi, **options: Any) -> APIRouter:
    """The endpoints below ``/api/hooks``."""
    router = APIRouter(route_class=JsonRoute, tags=["hooks"], **options)
    edits = api.edits

    @router.get("/api/hooks", responses={200: {"model": HookList}, 304: {"description": "As you know it."}})
    async def list_hooks(if_none_match: IfNoneMatch = None) -> Response:
        """All hooks of the workspace, in file order."""
        snapshot = await edits.run(api.store.snapshot)
        if _is_known(if_none_match, snapshot.etag):
            return Response(status_code=304, headers={"etag": snapshot.etag})
        return _json(_listed(snapshot), etag=snapshot.etag)

    @router.post("/api/hooks", status_code=201, responses={201: {"model": HookDocument}})
    async def create_hook(body: HookBody, if_match: IfMatch = None) -> Response:
        """Add a hook."""
        store = api.store
        hook = await edits.run(
            lambda: store.create(body.event, body.action, body.enabled, _expected(if_match))
        )
        location = {"location": f"/api/hooks/{hook.id}"}
        return _json(hook._asdict(), 201, etag=hook.etag, headers=location)

    @router.put("/api/hooks", responses={200: {"model": ReplacedFile}})
    async def replace_file(
        request: Request,
        _: Annotated[dict[str, Any], Body(description="A whole hooks.json.")],
        if_match: IfMatch = None,
    ) -> Response:
        """Replace the whole hooks.json by the body, with ids and times added. This repairs a broken one.

        A copy of a broken file is kept beside it. Nothing in the body may be such that it would not run.
        """
        store, text = api.store, await request.body()
        snapshot, copy = await edits.run(lambda: store.replace_file(text, _expected(if_match)))
        return _json({**_listed(snapshot), "broken_copy": copy}, etag=snapshot.etag)

    @router.get(
        "/api/hooks/{id}",
        responses={200: {"model": HookDocument}, 304: {"description": "As you know it."}},
    )
    async def read_hook(id: str, if_none_match: IfNoneMatch = None) -> Response:
        """One hook."""
        store = api.store
        hook = await edits.run(lambda: store.get(id))
        if _is_known(if_none_match, hook.etag):
            return Response(status_code=304, headers={"etag": hook.etag})
        return _json(hook._asdict(), etag=hook.etag)

    @router.put("/api/hooks/{id}", responses={200: {"model": HookDocument}})
    async def replace_hook(id: str, body: HookBody, if_match: IfMatch = None) -> Response:
        """Replace what a hook does. Keys of its action in hooks.json that are not documented stay."""
        store = api.store
        if body.id not in (None, id):
            raise Problem(422, "other_id", f"the body is of hook {body.id!r}, the path of {id!r}", field="id")
        hook = await edits.run(
            lambda: store.replace(id, body.event, body.action, body.enabled, _expected(if_match))
        )
        return _json(hook._asdict(), etag=hook.etag)

    @router.delete("/api/hooks/{id}", status_code=204, response_class=Response)
    async def delete_hook(id: str, if_match: IfMatch = None) -> Response:
        """Delete a hook. Its id is not given again."""
        store = api.store
        await edits.run(lambda: store.delete(id, _expected(if_match)))
        return Response(status_code=204)

    @router.patch("/api/hooks/{id}/toggle", responses={200: {"model": ToggledHook}})
    async def toggle_hook(id: str, if_match: IfMatch = None) -> Response:
        """Enable a disabled hook, disable an enabled one."""
        store = api.store
        hook = await edits.run(lambda: store.toggle(id, _expected(if_match)))
        return _json({"id": hook.id, "enabled": hook.enabled}, etag=hook.etag)

    @router.post("/api/hooks/{id}/test", responses={200: {"model": TestOutcome}})
    async def test_hook(id: str, body: TestBody | None = None) -> Response:
        """Run a hook once, disabled or not, for a sample of its event, and tell how the run ended."""
        return await api.test(id, body or TestBody())

    return router


def _listed(snapshot: Snapshot) -> dict[str, Any]:
    return {"hooks": [hook._asdict() for hook in snapshot.hooks]}


def _tags(header: str) -> set[str]:
    """The entity tags of a condition, weak ones as they are written."""
    return {tag.strip() for tag in header.split(",")}


def _is_known(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match holds the tag. It compares weakly: ``W/`` does not count (RFC 9110)."""
    return header is not None and not {etag, "*"}.isdisjoint(t.removeprefix("W/") for t in _tags(header))


def _expected(header: str | None) -> Sequence[str] | None:
    """The tags of an If-Match. It compares strongly: a weak one is none of ours (RFC 9110)."""
    return None if header is None else sorted(_tags(header))


def _json(
    document: dict[str, Any],
    status: int = 200,
    *,
    etag: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    told = {**(headers or {}), **({} if etag is None else {"etag": etag})}
    return Response(orjson.dumps(document), status, media_type="application/json", headers=told)
