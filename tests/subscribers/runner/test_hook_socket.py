"""The hook socket: one connection, one answer; what is no request; who has gone; its end."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from subscribers.runner import hook_socket
from subscribers.runner.hook_socket import HookSocket, SocketTaken
from subscribers.runner.hook_socket_frames import Reply, Request
from subscribers.shim import hook_command

REQUEST = hook_command.request(b"codex\0open\x005000\0/tmp", b"A=1", b"{}")
SECONDS = 20.0


async def echo(request: Request) -> Reply:
    """Give the payload back."""
    return Reply(2, request.payload, request.environment)


def serve(
    folder: Path, answer: Callable[[Request], Awaitable[Reply]], use: Callable[[HookSocket], Awaitable[None]]
) -> HookSocket:
    """Use a socket in ``folder`` and stop it."""
    home = HookSocket(str(folder / "hook.sock"), answer)

    async def run() -> None:
        await home.start()
        try:
            await use(home)
        finally:
            await home.stop(0.05)

    asyncio.run(run())
    return home


async def say(home: HookSocket, data: bytes) -> bytes:
    """What is answered to ``data``, until the other end closes."""
    reader, writer = await asyncio.open_unix_connection(home.path)
    writer.write(data)
    try:
        async with asyncio.timeout(SECONDS):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_each_connection_gets_its_answer(runtime_dir: Path) -> None:
    """Several at once, each its own; the socket is our user's alone and goes with its end."""

    async def use(home: HookSocket) -> None:
        assert stat.S_IMODE(os.stat(home.path).st_mode) == 0o600
        answers = await asyncio.gather(*(say(home, REQUEST) for _ in range(5)))
        assert answers == [Reply(2, b"{}", b"A=1").encode()] * 5

    home = serve(runtime_dir, echo, use)
    assert not os.path.exists(home.path)
    assert home.refused == {"busy": 0, "bad": 0, "gone": 0}


def test_what_is_no_request_is_broken_off(runtime_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other bytes, bytes after the request, a request that never comes, and one more than can be."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def never(_: Request) -> Reply:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async def use(home: HookSocket) -> None:
        assert await say(home, b"GET / HTTP/1.1\r\n\r\n") == b""
        monkeypatch.setattr(hook_socket, "REQUEST_SECONDS", 0.01)
        assert await say(home, REQUEST[:10]) == b""
        _, writer = await asyncio.open_unix_connection(home.path)
        writer.write(REQUEST)
        await begun.wait()
        monkeypatch.setattr(hook_socket, "CONNECTIONS", 1)
        assert await say(home, REQUEST) == b""
        writer.write(b"more")
        await ended.wait()
        writer.close()

    assert serve(runtime_dir, never, use).refused == {"busy": 1, "bad": 3, "gone": 1}


def test_a_defect_is_no_silence(runtime_dir: Path) -> None:
    """An answer that cannot be made breaks the connection off, so that nobody waits."""

    async def fail(_: Request) -> Reply:
        raise KeyError("defect")

    async def use(home: HookSocket) -> None:
        assert await say(home, REQUEST) == b""

    serve(runtime_dir, fail, use)


def test_what_is_done_for_an_agent_ends_with_it(runtime_dir: Path) -> None:
    """An agent that was stopped takes its event along; at the socket's end the rest is broken off."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(_: Request) -> Reply:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async def use(home: HookSocket) -> None:
        for way in ("its own", "the socket's"):
            begun.clear()
            cancelled.clear()
            _, writer = await asyncio.open_unix_connection(home.path)
            writer.write(REQUEST)
            async with asyncio.timeout(SECONDS):
                await begun.wait()
                if way == "its own":
                    writer.close()
                else:
                    await home.stop(0.01)
                await cancelled.wait()
            writer.close()

    assert serve(runtime_dir, wait, use).refused["gone"] == 2


def test_a_socket_that_was_removed_or_replaced_is_missed_and_made_again(runtime_dir: Path) -> None:
    """What was there before it was removed is answered to the end; another one's file is left at the end."""
    begun, go = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> Reply:
        if request.environment != b"":
            begun.set()
            await go.wait()
        return await echo(request)

    async def use(home: HookSocket) -> None:
        assert home.is_there
        under_way = asyncio.create_task(say(home, REQUEST))
        await begun.wait()
        os.unlink(home.path)
        assert not home.is_there
        await home.start()
        quick = hook_command.request(b"codex\0open\x005000\0/tmp", b"", b"{}")
        assert await say(home, quick) != b""
        os.rename(home.path, runtime_dir / "aside")
        os.mknod(home.path)
        assert not home.is_there
        await home.start()
        assert stat.S_IMODE(os.stat(home.path).st_mode) == 0o600
        go.set()
        assert b"A=1" in await under_way
        assert await say(home, REQUEST) != b""
        os.unlink(home.path)
        (runtime_dir / "hook.sock").write_text("another's")

    home = HookSocket("/unused", echo)
    assert not home.is_there
    home = serve(runtime_dir, wait, use)
    assert Path(home.path).read_text() == "another's"


def test_a_socket_that_somebody_answers_at_is_not_taken(runtime_dir: Path) -> None:
    """One that was left behind is replaced."""

    async def use(home: HookSocket) -> None:
        with pytest.raises(SocketTaken, match="another process answers"):
            await HookSocket(home.path, echo).start()
        assert await say(home, REQUEST) != b""

    serve(runtime_dir, echo, use)
    with open(runtime_dir / "hook.sock", "wb"):
        pass
    serve(runtime_dir, echo, use)
