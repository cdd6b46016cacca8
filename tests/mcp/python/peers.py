"""Connects the official Python client with `fanfold mcp`, over both transports and both kinds of protocol."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

HERE = Path(__file__).parent
BINARY = os.environ.get("FANFOLD", str(HERE.parents[2] / "target/debug/fanfold"))
TOKEN = "the-token-of-the-tests"
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "FANFOLD_TEST_TOKEN": TOKEN}
META = {"name": "test", "description": "a test"}


def workflow(script, **rest):
    return {"meta": META, "script": script, **rest}


def text_of(result):
    return "\n".join(block.text for block in result.content)


@asynccontextmanager
async def serve(args=("--agents", "scripted"), cwd=None):
    """A server that listens on a free port; gives its process and address."""
    words = [BINARY, "mcp", "--transport", "http", "--token-env", "FANFOLD_TEST_TOKEN", *args]
    process = subprocess.Popen(words, env=ENVIRONMENT, cwd=cwd, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if address := re.search(r"http:\S+/mcp", line):
                break
        else:
            raise RuntimeError("the server did not start")
        yield process, address[0]
    finally:
        process.send_signal(signal.SIGTERM)
        await anyio.to_thread.run_sync(process.wait)
        process.stderr.close()


@asynccontextmanager
async def http_transport(url):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300)) as http_client:
        async with streamable_http_client(url, http_client=http_client) as streams:
            yield streams


@asynccontextmanager
async def breaking(url, text):
    """An address that leads to a server, until the text comes from there: then that connection is cut, once."""
    port = int(re.search(r":(\d+)/", url)[1])
    broken = False

    async def serve_one(client):
        nonlocal broken
        async with client, await anyio.connect_tcp("127.0.0.1", port) as server:
            async with anyio.create_task_group() as group:

                async def pump(source, sink):
                    nonlocal broken
                    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                        while True:
                            data = await source.receive()
                            await sink.send(data)
                            if source is server and not broken and text in data:
                                broken = True
                                break
                    group.cancel_scope.cancel()

                group.start_soon(pump, client, server)
                group.start_soon(pump, server, client)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve_one)
        yield url.replace(str(port), str(listener.extra(anyio.abc.SocketAttribute.local_port)))
        group.cancel_scope.cancel()


def paid_agents(folder, seconds):
    """Agents that take a while and leave a line in a file each: how to count them, and the server's arguments."""
    file, command = Path(folder) / "paid", Path(folder) / "agent.sh"
    file.write_text("")
    command.write_text(f"#!/bin/sh\necho paid >> {file}\nsleep {seconds}\necho the value\n")
    command.chmod(0o755)
    return lambda: len(file.read_text().splitlines()), ("--agent-command", str(command))


@asynccontextmanager
async def connect(transport, mode, args=("--agents", "scripted"), cwd=None, **options):
    """A client of a server of its own, which speaks this version of the protocol."""
    options["mode"] = "legacy" if mode == "legacy" else "auto"
    if transport == "stdio":
        parameters = StdioServerParameters(command=BINARY, args=["mcp", *args], env=ENVIRONMENT, cwd=cwd)
        quiet = open(os.devnull, "w")
        with quiet:
            async with Client(stdio_client(parameters, errlog=quiet), **options) as client:
                assert client.protocol_version == ("2025-11-25" if mode == "legacy" else mode)
                yield client
    else:
        async with serve(args, cwd) as (_, url):
            async with Client(http_transport(url), **options) as client:
                assert client.protocol_version == ("2025-11-25" if mode == "legacy" else mode)
                yield client


def processes_with(word):
    """The processes that have this word in their command line, as agents that hang do."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word in (entry / "cmdline").read_text().split("\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


async def until(condition):
    """Returns once the condition holds; the test's own time limit is what fails."""
    while not condition():
        await anyio.sleep(0.02)


_last = 0


def hanging_agent():
    """An agent that hangs: a word to recognise it by among the processes, and the server's arguments."""
    global _last
    _last += 1
    seconds = f"{200000 + os.getpid()}.{_last}"
    return seconds, ("--agent-command", f"sleep {seconds}", "--limits", '{"maxConcurrentAgents": 4}')


async def die(transport, mode, url, args):
    """A client that starts two runs and then waits to be killed."""
    if transport == "stdio":
        wire = stdio_client(StdioServerParameters(command=BINARY, args=["mcp", *args], env=ENVIRONMENT))
    else:
        wire = http_transport(url)
    async with Client(wire, mode=mode) as client:
        hanging = workflow("return await agent('hang')")
        await client.call_tool("workflow_start", hanging)
        await client.call_tool("workflow", hanging)


if __name__ == "__main__":
    anyio.run(die, sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
