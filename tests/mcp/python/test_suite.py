"""What the official Python client must find in `fanfold mcp`, over both transports."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import pytest
from mcp import Client, types
from mcp.shared.exceptions import MCPError

import peers
from peers import (
    breaking,
    connect,
    hanging_agent,
    paid_agents,
    processes_with,
    serve,
    text_of,
    until,
    workflow,
)
from tasks import Cancelled, Tasks

pytestmark = pytest.mark.anyio
EXAMPLES = peers.HERE.parents[2] / "examples"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=["stdio", "http"])
def transport(request):
    return request.param


@pytest.fixture(params=["legacy", "2026-07-28"])
def mode(request):
    return request.param


async def sample(context, params):
    answer = types.TextContent(type="text", text=f"sampled:{params.messages[0].content.text}")
    return types.CreateMessageResult(model="test-model", role="assistant", content=answer)


async def test_lists_five_tools_that_say_what_they_take_and_give(transport, mode):
    async with connect(transport, mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [
            "workflow",
            "workflow_start",
            "workflow_status",
            "workflow_result",
            "workflow_cancel",
        ]
        assert all(tool.input_schema["type"] == tool.output_schema["type"] == "object" for tool in tools)
        assert client.instructions.startswith("Use the workflow tool ONLY when the user explicitly asks")


async def test_runs_a_script_and_gives_text_and_value(transport, mode):
    async with connect(transport, mode) as client:
        script = "return await parallel(args.words.map((word) => () => agent(word)))"
        result = await client.call_tool("workflow", workflow(script, args={"words": ["fan", "fold"]}))
        assert text_of(result) == (
            'workflow "test" completed (2 agents).\nReturn value:\n[\n  "echo:fan",\n  "echo:fold"\n]'
        )
        assert result.structured_content["result"] == ["echo:fan", "echo:fold"]
        failed = await client.call_tool("workflow", workflow("throw new Error('no luck')"))
        assert failed.is_error and "no luck" in text_of(failed)
        with pytest.raises(MCPError):
            await client.call_tool("no_such_tool", {})


async def test_tells_progress_to_those_who_ask(transport, mode):
    told = []

    async def on_progress(progress, total, message):
        told.append((progress, total, message))

    async with connect(transport, mode) as client:
        script = "phase('Look'); await agent('sleep:300'); phase('Write'); await agent('sleep:300'); return 1"
        await client.call_tool("workflow", workflow(script), progress_callback=on_progress)
    assert len(told) >= 3
    assert all(later[0] > earlier[0] for earlier, later in zip(told, told[1:]))
    assert (0.0, 1.0, "Look: 0 of 1 agent done") in [(int(progress), total, message) for progress, total, message in told]


async def test_passes_logs_on_that_are_severe_enough(transport, mode):
    lines = []

    async def on_log(params):
        lines.append((params.level, params.data["message"]))

    async with connect(transport, mode, logging_callback=on_log) as client:

        async def say(level, text):
            meta = None
            if mode == "legacy":
                await client.session.set_logging_level(level)
            else:
                meta = {"io.modelcontextprotocol/logLevel": level}
            await client.call_tool("workflow", workflow(f"log({json.dumps(text)}); return 1"), meta=meta)

        await say("error", "too quiet")
        await say("info", "loud enough")
        await until(lambda: lines)
        if mode != "legacy":
            await client.call_tool("workflow", workflow("log('nobody asked'); return 1"))
    assert lines == [("info", "loud enough")]


async def test_stops_a_run_and_its_agents_when_the_call_is_cancelled(transport, mode):
    word, args = hanging_agent()
    async with connect(transport, mode, args) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "workflow", workflow("return await agent('hang')"))
            await until(lambda: len(processes_with(word)) == 1)
            group.cancel_scope.cancel()
        await until(lambda: not processes_with(word))
        assert not (await client.call_tool("workflow", workflow("return 1"))).is_error


async def test_answers_several_calls_at_once(transport, mode):
    args = ("--agents", "scripted", "--limits", '{"maxConcurrentAgents": 16}')
    results = {}
    async with connect(transport, mode, args) as client:

        async def call(n):
            script = f"await agent('sleep:200'); return {n}"
            results[n] = (await client.call_tool("workflow", workflow(script))).structured_content["result"]

        async with anyio.create_task_group() as group:
            for n in range(8):
                group.start_soon(call, n)
    assert results == {n: n for n in range(8)}


async def test_gives_a_result_of_2_mb_in_pages(transport, mode):
    async with connect(transport, mode) as client:
        script = "const part = 'é€😀x'.repeat(10); return Array.from({ length: 36000 }, (_, n) => part + n)"
        first = await client.call_tool("workflow", workflow(script))
        assert "… [truncated: " in text_of(first) and "result" not in first.structured_content
        run_id, offset, text = first.structured_content["runId"], 0, ""
        while offset is not None:
            page = await client.call_tool("workflow_result", {"runId": run_id, "offset": offset})
            text += page.structured_content["page"]
            offset = page.structured_content.get("nextOffset")
        assert len(text.encode()) > 2_000_000
        assert json.loads(text) == ["é€😀x" * 10 + str(n) for n in range(36000)]


async def test_runs_in_the_background(transport, mode):
    async with connect(transport, mode) as client:
        started = await client.call_tool("workflow_start", workflow("await agent('sleep:200'); return 'later'"))
        run_id = started.structured_content["runId"]
        status = await client.call_tool("workflow_status", {"runId": run_id})
        assert status.structured_content["name"] == "test"
        result = await client.call_tool("workflow_result", {"runId": run_id, "waitMs": 60000})
        assert json.loads(result.structured_content["page"]) == "later"
        hanging = await client.call_tool("workflow_start", workflow("return await agent('hang:')"))
        cancelled = await client.call_tool("workflow_cancel", {"runId": hanging.structured_content["runId"]})
        assert cancelled.structured_content["state"] == "cancelled"


async def test_says_all_in_the_text_and_all_in_the_structured_half(transport, mode):
    async with connect(transport, mode) as client:
        cut = await client.call_tool("workflow", workflow("return 'y'.repeat(120000)"))
        value = cut.structured_content
        assert len(value["page"]) == value["nextOffset"] == 50_000
        assert value["page"] in text_of(cut) and value["runId"] in text_of(cut)
        prompts = "Array.from({ length: 300 }, (_, i) => () => agent(`fail:no licence ${'x'.repeat(1000)}`))"
        script = f"return (await parallel({prompts})).filter(Boolean).length"
        failed = await client.call_tool("workflow", workflow(script))
        assert "300 agents failed:" in text_of(failed) and "no licence" in text_of(failed)
        value = failed.structured_content
        assert (len(value["failures"]), value["moreFailures"]) == (50, 250)
        assert len(json.dumps(value)) + len(text_of(failed)) < 200_000
        thrown = await client.call_tool("workflow", workflow("await agent('a'); throw new Error('boom')"))
        value = thrown.structured_content
        assert thrown.is_error and value["state"] == "error" and "boom" in value["error"]["message"]
        assert value["runId"] in text_of(thrown)


async def test_finds_the_run_of_a_call_that_was_given_up_silently(transport, mode, tmp_path):
    paid, args = paid_agents(tmp_path, 1)
    async with connect(transport, mode, args) as client:
        arguments = workflow("return await agent('x')")
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "workflow", arguments)
            await until(lambda: paid() == 1)
            status = await client.call_tool("workflow_status", {})
            [run] = status.structured_content["runs"]
            assert run["state"] == "running" and run["runId"] in text_of(status)
            again = (await client.call_tool("workflow", arguments)).structured_content
            assert (again["runId"], again["result"]) == (run["runId"], "the value")
    assert paid() == 1


async def test_loses_nothing_with_a_connection(tmp_path):
    paid, args = paid_agents(tmp_path, 1)
    told = []

    async def on_progress(progress, total, message):
        told.append(message)

    async with serve(args) as (_, url), breaking(url, b'"run ') as url:
        async with Client(peers.http_transport(url), mode="legacy") as client:
            arguments = workflow("return await agent('x')")
            result = await client.call_tool("workflow", arguments, progress_callback=on_progress)
            assert result.structured_content["result"] == "the value"
            assert told[0] == f"run {result.structured_content['runId']}"
            assert paid() == 1


async def test_offers_saved_workflows_as_tools(transport, mode, tmp_path):
    folder = tmp_path / ".fanfold/workflows"
    folder.mkdir(parents=True)
    schema = '{ type: "object", properties: { n: { type: "array", items: { type: "integer" } } }, required: ["n"] }'
    header = f'export const meta = {{ name: "add", description: "Adds up", args: {schema} }}'
    (folder / "add.js").write_text(f"{header}\nreturn args.n.reduce((a, b) => a + b, 0)")
    async with connect(transport, mode, ("--agents", "scripted", "--name", "add"), tmp_path) as client:
        tools = (await client.list_tools()).tools
        assert tools[-1].name == "add" and tools[-1].input_schema["required"] == ["n"]
        assert (await client.call_tool("add", {"n": [1, 2, 3]})).structured_content["result"] == 6
        wrong = await client.call_tool("add", {"n": [1, "2"]})
        assert wrong.is_error and wrong.structured_content["error"]["path"] == "args.n[1]"


async def test_leaves_nothing_behind_when_its_client_dies(transport, mode):
    word, args = hanging_agent()

    async def die(url, outlives):
        words = [sys.executable, str(Path(peers.__file__)), transport, mode, url, *args]
        dying = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await until(lambda: len(processes_with(word)) == 2)
        dying.kill()
        await anyio.to_thread.run_sync(dying.wait)
        await until(lambda: len(processes_with(word)) == outlives)

    if transport == "stdio":
        await die("", 0)
    else:
        async with serve((*args, "--session-idle-ms", "500")) as (_, url):
            # A run in the background belongs to the server, where the protocol has no sessions.
            await die(url, 0 if mode == "legacy" else 1)
        await until(lambda: not processes_with(word))


async def test_lets_the_clients_own_model_be_the_agents(transport, mode):
    args = ("--limits", '{"maxConcurrentAgents": 16}')
    async with connect(transport, mode, args, tempfile.mkdtemp(), sampling_callback=sample) as client:
        script = "return await parallel(['a', 'b', 'c'].map((word) => () => agent(word)))"
        result = await client.call_tool("workflow", workflow(script))
        assert result.structured_content["result"] == ["sampled:a", "sampled:b", "sampled:c"]


async def test_is_a_task_where_the_client_knows_tasks(transport):
    tasks = Tasks()
    async with connect(transport, "2026-07-28", extensions=[tasks]) as client:
        quick = await client.call_tool("workflow", workflow("return 1"))
        assert quick.structured_content["result"] == 1 and not tasks.created
        script = "phase('Wait'); await agent('sleep:1500'); return 'done'"
        result = await client.call_tool("workflow", workflow(script))
        assert result.structured_content["result"] == "done"
        [task] = tasks.created
        assert task.status == "working"
        assert "Wait: 0 of 1 agent done" in [state.status_message for state in tasks.states]
        assert {state.task_id for state in tasks.states} == {task.task_id}
        failed = await client.call_tool("workflow", workflow("await agent('sleep:1500'); throw new Error('no luck')"))
        assert failed.is_error and "no luck" in text_of(failed)


async def test_a_task_can_be_cancelled(transport):
    word, args = hanging_agent()
    async with connect(transport, "2026-07-28", args, extensions=[Tasks(cancel_at_once=True)]) as client:
        with pytest.raises(Cancelled):
            await client.call_tool("workflow", workflow("return await agent('hang')"))
        assert not processes_with(word)


async def test_a_task_asks_the_clients_own_model(transport):
    async def answer(params):
        text = params["messages"][0]["content"]["text"]
        return {"model": "m", "role": "assistant", "content": {"type": "text", "text": f"sampled:{text}"}}

    tasks = Tasks(sample=answer)
    args = ("--agents", "sampling")
    async with connect(transport, "2026-07-28", args, extensions=[tasks], sampling_callback=sample) as client:
        script = "let text = ''; for (let n = 0; n < 15; n++) text = await agent(`${n}`); return text"
        result = await client.call_tool("workflow", workflow(script))
        assert result.structured_content["result"] == "sampled:14"
        assert "input_required" in [state.status for state in tasks.states]


async def test_runs_an_example_with_no_further_set_up(transport, mode):
    async with connect(transport, mode, (), tempfile.mkdtemp()) as client:
        arguments = {"script": (EXAMPLES / "review.js").read_text(), "args": {"offline": True}}
        result = await client.call_tool("workflow", arguments)
        assert not result.is_error and result.structured_content["result"]["statistics"]
        assert "--agent-command" in result.structured_content["notice"]
