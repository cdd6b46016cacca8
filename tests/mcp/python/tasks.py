"""The client's half of the protocol's tasks extension, written against its specification alone."""

from collections.abc import Sequence
from typing import Any, Literal

import anyio
from mcp.client import ClientExtension
from mcp.client.extension import ClaimContext, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict, Field


class TaskCreated(Result):
    model_config = ConfigDict(extra="allow", populate_by_name=True)
    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str
    ttl_ms: int | None = Field(default=None, alias="ttlMs")
    poll_interval_ms: int = Field(default=1000, alias="pollIntervalMs")


class TaskParams(RequestParams):
    model_config = ConfigDict(extra="allow", populate_by_name=True)
    task_id: str = Field(alias="taskId")


class TaskState(Result):
    model_config = ConfigDict(extra="allow", populate_by_name=True)
    task_id: str = Field(alias="taskId")
    status: str
    status_message: str | None = Field(default=None, alias="statusMessage")
    # Not named as on the wire: the client keeps those names for results of its own.
    result: dict[str, Any] | None = None


class Acknowledged(Result):
    model_config = ConfigDict(extra="allow")


class TaskRequest(Request[TaskParams, str]):
    name_param = "taskId"


class Tasks(ClientExtension):
    """Follows tasks to their ends; keeps what it saw."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, sample=None, cancel_at_once=False):
        self.sample = sample
        self.cancel_at_once = cancel_at_once
        self.created: list[TaskCreated] = []
        self.states: list[TaskState] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskCreated, resolve=self.follow)]

    async def follow(self, task: TaskCreated, context: ClaimContext) -> CallToolResult:
        self.created.append(task)

        async def ask(method, result, **rest):
            params = TaskParams(task_id=task.task_id, **rest)
            return await context.session.send_request(TaskRequest(method=method, params=params), result)

        if self.cancel_at_once:
            await ask("tasks/cancel", Acknowledged)
        while True:
            state = await ask("tasks/get", TaskState)
            self.states.append(state)
            if state.status == "input_required":
                questions = state.model_extra["inputRequests"]
                answers = {key: await self.sample(question["params"]) for key, question in questions.items()}
                await ask("tasks/update", Acknowledged, inputResponses=answers)
            elif state.status == "completed":
                return CallToolResult.model_validate(state.result)
            elif state.status == "cancelled":
                raise Cancelled()
            else:
                await anyio.sleep(0.05)


class Cancelled(Exception):
    pass
