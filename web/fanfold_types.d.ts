/* tslint:disable */
/* eslint-disable */
/**
 * A call of `agent()` that does not start.
 */
export interface RefusedAgent extends QueuedAgent {
    /**
     * Why it does not start.
     */
    reason: string;
}

/**
 * A call of `agent()` that has not started.
 */
export interface QueuedAgent {
    /**
     * The number of the call in the run, from 1.
     */
    seq: number;
    /**
     * What people call it. Labels may repeat.
     */
    label: string;
    /**
     * The phase it belongs to.
     */
    phase?: string;
}

/**
 * A child and how it ended.
 */
export interface EndedAgent extends Agent {
    /**
     * How it ended.
     */
    outcome: AgentOutcome;
    /**
     * What it cost, where its provider said so.
     */
    usage?: Usage;
    /**
     * What kind of failure it was, in one word of the provider's such as `rateLimit`, where it told any.
     */
    kind?: string;
    /**
     * Why it has no answer, where it has none, after the kind.
     */
    reason?: string;
}

/**
 * A child of a run.
 */
export interface Agent {
    /**
     * The number of its `agent()` call in the run, from 1.
     */
    seq: number;
    /**
     * What people call it. Labels may repeat.
     */
    label: string;
    /**
     * The phase it belongs to.
     */
    phase?: string;
    /**
     * The provider's name for it.
     */
    childId: string;
}

/**
 * A child that ended without success, or could not start.
 */
export interface AgentFailure {
    /**
     * The number of its `agent()` call.
     */
    seq: number;
    /**
     * Its label.
     */
    label: string;
    /**
     * What kind of failure it was, in one word of the provider's such as `rateLimit`, if it told any.
     */
    kind?: string;
    /**
     * Why, as the provider says it, after the kind.
     */
    reason: string;
}

/**
 * A git worktree in which a child worked alone (`isolation: "worktree"`), with what it changed.
 */
export interface Worktree {
    /**
     * The number of the child's `agent()` call.
     */
    seq: number;
    /**
     * The child's label.
     */
    label: string;
    /**
     * The worktree's folder.
     */
    path: string;
    /**
     * The branch that is checked out in it, or the one it was made with.
     */
    branch: string;
    /**
     * The commit that it was made from.
     */
    base: string;
    /**
     * The commits that were added to it, the oldest first; the last 100 of them.
     */
    commits: string[];
    /**
     * Whether it holds changes that are not committed.
     */
    uncommitted: boolean;
    /**
     * Why it could not be told what changed; it was kept for that.
     */
    problem?: string;
}

/**
 * A line that the script logged.
 */
export interface LogView {
    /**
     * Its number among the run's logs, from 1.
     */
    number: number;
    /**
     * When it was logged.
     */
    at: number;
    /**
     * What it says; cut after 16 KiB.
     */
    message: string;
    /**
     * The phase the script was in, by its index.
     */
    phase?: number;
}

/**
 * A log-only record in the calling agent's session.
 */
export type SessionRecord = { type: "tool-workflow/run-start"; payload: { runId: string; name: string } } | { type: "tool-workflow/agent-start"; payload: { runId: string; seq: number; label: string; phase?: string; childId: string } } | { type: "tool-workflow/agent-end"; payload: { runId: string; seq: number; outcome: AgentOutcome } } | { type: "tool-workflow/run-end"; payload: { runId: string; stopReason: StopReason } };

/**
 * A phase that has started: the script entered it, or called an agent of it. One that is only planned is in
 * [`Meta::phases`].
 */
export interface PhaseView {
    /**
     * Its place, in the order in which they started, from 0.
     */
    index: number;
    /**
     * Its title. No phase is not the same as a phase with an empty title.
     */
    title: string;
    /**
     * When it started.
     */
    began?: number;
    /**
     * When it was last seen to be left, or one of its agents to end.
     */
    ended?: number;
    /**
     * Whether the script is in it, or an agent of it runs or waits for its turn.
     */
    active: boolean;
    /**
     * Its agents.
     */
    agents: Tally;
}

/**
 * A phase the author plans.
 */
export interface Phase {
    /**
     * What `phase()` will be called with. Never empty.
     */
    title: string;
    /**
     * What happens in it.
     */
    detail?: string;
    /**
     * The model provider its agents are meant for.
     */
    provider?: string;
    /**
     * The model its agents are meant for.
     */
    model?: string;
}

/**
 * A stable name for what went wrong. Messages may change, codes do not.
 */
export type ErrorCode = "SCRIPT_PARSE" | "META_INVALID" | "INVALID_ARGUMENT" | "UNSUPPORTED_OPTION" | "UNSUPPORTED_SCHEMA" | "AGENT_CAP" | "ITEM_CAP" | "AGENT_START" | "AGENT_RESULT" | "RESULT_UNSERIALIZABLE" | "CANCELLED" | "TIME_LIMIT" | "CPU_LIMIT" | "MEMORY_LIMIT" | "STACK_LIMIT" | "OUTPUT_LIMIT" | "DEADLOCK" | "INTERNAL";

/**
 * Agents that failed for the same reason.
 */
export interface FailureGroup {
    /**
     * Why the first one failed, as the provider says it.
     */
    reason: string;
    /**
     * The label of the first one.
     */
    label: string;
    /**
     * The numbers of their `agent()` calls, in the order in which they failed.
     */
    seqs: number[];
}

/**
 * An agent: a call of `agent()` that waits for its turn, runs, or is over.
 */
export interface AgentView {
    /**
     * Its place, in the order in which they were first heard of, from 0.
     */
    index: number;
    /**
     * The number of its `agent()` call in the run, from 1.
     */
    seq: number;
    /**
     * What people call it. Labels may repeat.
     */
    label: string;
    /**
     * Its phase by its index, if it has one.
     */
    phase?: number;
    /**
     * The provider's name for it; empty before it has started.
     */
    childId: string;
    /**
     * How far it is.
     */
    state: AgentState;
    /**
     * When it was called, where that was told.
     */
    queued?: number;
    /**
     * When it began.
     */
    began?: number;
    /**
     * When it ended.
     */
    ended?: number;
    /**
     * What it cost, where that is known.
     */
    usage?: Usage;
    /**
     * Why it did not start or succeed.
     */
    reason?: string;
    /**
     * How many of its attempts failed and were followed by another one.
     */
    retries?: number;
    /**
     * The attempt that failed last, until something is heard of the next one.
     */
    retry?: RetryView;
    /**
     * When it last said something, or began.
     */
    heard?: number;
    /**
     * The end of what it has said, at most 400 characters. Its text, not its thinking.
     */
    said?: string;
    /**
     * The tool that it called last.
     */
    tool?: string;
}

/**
 * An attempt of a child that failed.
 */
export interface AgentRetry {
    /**
     * The number of the child's call.
     */
    seq: number;
    /**
     * The number of the attempt that failed, from 1.
     */
    attempt: number;
    /**
     * What kind of failure it was, in one word of the provider's: `rateLimit`, `timeout`, `schema`.
     */
    kind: string;
    /**
     * What was wrong.
     */
    reason: string;
    /**
     * Milliseconds until the next attempt.
     */
    waitMs: number;
}

/**
 * An attempt that failed, while the next one is waited for.
 */
export interface RetryView {
    /**
     * What kind of failure it was, in one word.
     */
    kind: string;
    /**
     * What was wrong.
     */
    reason: string;
    /**
     * When the next attempt begins.
     */
    until: number;
}

/**
 * How a child ended.
 */
export type AgentOutcome = "completed" | "failed" | "cancelled";

/**
 * How a run ended, as observers see it: never the value.
 */
export interface RunEnd {
    /**
     * The one terminal state.
     */
    stopReason: StopReason;
    /**
     * Present exactly when the run did not complete.
     */
    error?: WorkflowError;
    /**
     * `agent()` calls that were accepted.
     */
    agentsStarted: number;
}

/**
 * How far a run is.
 */
export type RunState = "waiting" | "running" | "completed" | "cancelled" | "error" | "interrupted";

/**
 * How far an agent is.
 */
export type AgentState = "queued" | "refused" | "running" | "completed" | "failed" | "cancelled" | "interrupted";

/**
 * How many agents are in which state.
 */
export interface Tally {
    queued?: number;
    refused?: number;
    running: number;
    completed: number;
    failed: number;
    cancelled: number;
    interrupted: number;
}

/**
 * One thing that happened in a run.
 *
 * `workflow/start` comes first and `workflow/end` last, each exactly once. Every `workflow/agent-start` has
 * exactly one `workflow/agent-end`, before `workflow/end`. A call is queued before it starts or is refused; one that still
 * waits when the run ends has no event but its first. Numbers are consecutive from 1, so a reader that
 * comes late or again knows what it missed.
 */
export type Event = { id: string; n: number; at: number } & EventKind;

/**
 * The last line of a run: what became of it.
 */
export interface ResultLine {
    type: "result";
    /**
     * The run; none if it could not start.
     */
    id?: string;
    /**
     * The terminal state.
     */
    stopReason: StopReason;
    /**
     * What the script returned, if it completed.
     */
    value?: unknown;
    /**
     * Otherwise why it did not.
     */
    error?: WorkflowError;
    /**
     * `agent()` calls that were accepted.
     */
    agentsStarted: number;
    /**
     * What the children cost, where their providers said so.
     */
    usage?: Usage;
    /**
     * The children that could not start or ended without success.
     */
    failures?: AgentFailure[];
    /**
     * The worktrees that children left behind.
     */
    worktrees?: Worktree[];
    /**
     * `agent()` calls whose answers were lost.
     */
    neverAwaited?: number;
    /**
     * What was put right or ignored on the way.
     */
    warnings?: string[];
    /**
     * Computation, about one unit an instruction.
     */
    fuelUsed?: number;
    /**
     * What `Math.random` was seeded with.
     */
    seed?: number;
    /**
     * What `Date` said, in milliseconds since 1970.
     */
    startTimeMs?: number;
    /**
     * What a model would be shown.
     */
    text?: string;
}

/**
 * The name, the purpose and the planned phases of a workflow.
 *
 * Deserialising checks types only; [`Meta::from_value`] checks everything and reports it in one error.
 */
export interface Meta {
    /**
     * A short name in kebab-case. Never empty.
     */
    name: string;
    /**
     * What the workflow does. Never empty.
     */
    description: string;
    /**
     * When to choose this workflow.
     */
    whenToUse?: string;
    /**
     * The phases the author plans. A run may enter others, and may skip these.
     */
    phases?: Phase[];
    /**
     * What the script takes as its `args`: a JSON Schema with an object at its root. The engine checks it, and a run's
     * args against it before the run starts.
     */
    args?: Record<string, unknown>;
}

/**
 * The one terminal state of a run.
 */
export type StopReason = "completed" | "cancelled" | "error";

/**
 * The run as a whole. Times are those of its events, in milliseconds since 1970; session records have none.
 */
export interface RunHead {
    /**
     * The run's id, once something was told of it.
     */
    id?: string;
    /**
     * The workflow's name, once the run has started.
     */
    name?: string;
    /**
     * What the script says it is. Session records know the name alone.
     */
    meta?: Meta;
    /**
     * How far it is.
     */
    state: RunState;
    /**
     * When it began.
     */
    began?: number;
    /**
     * When it ended.
     */
    ended?: number;
    /**
     * When the last thing that is known happened.
     */
    last?: number;
    /**
     * The phase the script is in, by its index.
     */
    currentPhase?: number;
    /**
     * Its agents.
     */
    agents: Tally;
    /**
     * The most agents that ran at once.
     */
    peak: number;
    /**
     * `agent()` calls that were accepted, known at the end.
     */
    agentsStarted?: number;
    /**
     * What its agents have cost, where that is known.
     */
    usage?: Usage;
    /**
     * Why it did not complete.
     */
    error?: WorkflowError;
    /**
     * What was put right or ignored on the way.
     */
    warnings: string[];
    /**
     * Whether the result was told.
     */
    hasResult: boolean;
    /**
     * How many lines it has logged.
     */
    logged: number;
    /**
     * How many of them, the oldest, are no longer kept.
     */
    forgottenLogs: number;
    /**
     * How many events were never told.
     */
    missingEvents: number;
}

/**
 * Tokens that models read and wrote and what that cost, as their providers report it.
 *
 * ```
 * use fanfold_types::Usage;
 * let all: Usage = [Usage::new(100, 20).cached(80, 0), Usage::new(50, 5)].into_iter().sum();
 * assert_eq!(all, Usage::new(150, 25).cached(80, 0));
 * ```
 */
export interface Usage {
    /**
     * What models read, whether from a cache or not.
     */
    inputTokens?: number;
    /**
     * What models wrote, their thinking included.
     */
    outputTokens?: number;
    /**
     * How much of `input_tokens` was read from a cache. Missing in JSON for 0.
     */
    cacheReadTokens?: number;
    /**
     * How much of `input_tokens` was written to a cache. Missing in JSON for 0.
     */
    cacheCreationTokens?: number;
    /**
     * What it cost, where a provider says so: in JSON a number of US dollars.
     */
    costUsd?: number;
}

/**
 * What a child says while it works.
 */
export interface AgentProgress {
    /**
     * The number of the child's call.
     */
    seq: number;
    /**
     * What it is.
     */
    kind: ProgressKind;
    /**
     * The text. Empty where only the fact is told that the child is at work: it has said more than is passed on.
     */
    text: string;
}

/**
 * What a child says while it works.
 */
export type ProgressKind = "text" | "reasoning" | "tool" | "stderr";

/**
 * What an [`Event`] says, by its wire `type`.
 */
export type EventKind = { type: "workflow/start"; meta: Meta } | { type: "workflow/phase"; title: string } | { type: "workflow/log"; message: string } | { type: "workflow/agent-queued"; agent: QueuedAgent } | { type: "workflow/agent-refused"; agent: RefusedAgent } | { type: "workflow/agent-start"; agent: Agent } | { type: "workflow/agent-retry"; agent: AgentRetry } | { type: "workflow/agent-progress"; agent: AgentProgress } | { type: "workflow/agent-end"; agent: EndedAgent } | { type: "workflow/warning"; message: string } | { type: "workflow/end"; result: RunEnd };

/**
 * What is new in a view since it was last looked at.
 */
export interface ViewChanges {
    /**
     * What to ask with next time.
     */
    revision: number;
    /**
     * The run, always whole.
     */
    run: RunHead;
    /**
     * The phases that are new or have changed.
     */
    phases: PhaseView[];
    /**
     * The agents that are new or have changed.
     */
    agents: AgentView[];
    /**
     * The logs that are new.
     */
    logs: LogView[];
    /**
     * All failures by their reasons, if there are new ones.
     */
    failures?: FailureGroup[];
}

/**
 * What went wrong, where, and what to do about it.
 *
 * ```
 * use fanfold_types::ErrorCode;
 * let error = ErrorCode::ItemCap.error("parallel() takes at most 4096 items");
 * assert_eq!(error.to_string(), "ITEM_CAP: parallel() takes at most 4096 items");
 * ```
 */
export interface WorkflowError {
    /**
     * The stable code; none for an error that the script itself threw.
     */
    code?: ErrorCode;
    /**
     * What was wrong and what to do. For a script's own error its `name: message`, and its stack on the
     * lines that follow.
     */
    message: string;
    /**
     * Where in a value: `findings[2].title`, `meta.phases[0]`; empty for the value itself.
     */
    path?: string;
    /**
     * Line in the text the author wrote, from 1.
     */
    line?: number;
    /**
     * Column in characters, from 1.
     */
    column?: number;
}


/**
 * Checks the records of a session one by one, as they are loaded or appended.
 */
export class RecordChecker {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Checks the next record; one that is refused changes nothing.
     *
     * @throws if it does not belong there, with the reason
     */
    check(record: SessionRecord): void;
    /**
     * A checker of a session without records.
     */
    constructor();
}

/**
 * A run as people look at it, folded from its events, session records and result.
 *
 * Events may come in any order and more than once; the view is the same. A view is of one run, that of the
 * first thing it is told.
 */
export class RunView {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Says that nothing more will be told: a run without an end was interrupted then.
     */
    close(): void;
    /**
     * Takes in an event. `false` if it is of another run or was told before.
     */
    event(event: Event): boolean;
    /**
     * The same of a run that cannot be seen: what has not ended counts as interrupted. More can be taken in afterwards.
     */
    lastKnownSince(revision: number): ViewChanges;
    /**
     * Takes in a line of `fanfold run --json` or of a session log, as text. `false` if it was of no use: of another
     * run, told before, or something else's.
     *
     * @throws if the line is not a JSON object, or says it is one of ours and is not
     */
    line(line: string): boolean;
    /**
     * A view that was told nothing yet.
     */
    constructor();
    /**
     * Takes in a session record.
     */
    record(record: SessionRecord): boolean;
    /**
     * What is new since the `revision` that was last seen; everything since 0.
     */
    since(revision: number): ViewChanges;
    /**
     * Takes in events that still wait for others: what was told so far is in order and whole, as a file is.
     */
    skipMissing(): void;
}

/**
 * JSON text indented by two spaces, its numbers as they were written.
 */
export function pretty(json: string): string;

/**
 * After how many milliseconds without a word an agent is told to be quiet.
 */
export function quietAfterMs(): number;

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly __wbg_recordchecker_free: (a: number, b: number) => void;
    readonly __wbg_runview_free: (a: number, b: number) => void;
    readonly pretty: (a: number, b: number) => [number, number];
    readonly quietAfterMs: () => number;
    readonly recordchecker_check: (a: number, b: any) => [number, number];
    readonly recordchecker_new: () => number;
    readonly runview_close: (a: number) => void;
    readonly runview_event: (a: number, b: any) => [number, number, number];
    readonly runview_lastKnownSince: (a: number, b: number) => [number, number, number];
    readonly runview_line: (a: number, b: number, c: number) => [number, number, number];
    readonly runview_new: () => number;
    readonly runview_record: (a: number, b: any) => [number, number, number];
    readonly runview_since: (a: number, b: number) => [number, number, number];
    readonly runview_skipMissing: (a: number) => void;
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __wbindgen_exn_store: (a: number) => void;
    readonly __externref_table_alloc: () => number;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __wbindgen_start: () => void;
}

export type SyncInitInput = BufferSource | WebAssembly.Module;

/**
 * Instantiates the given `module`, which can either be bytes or
 * a precompiled `WebAssembly.Module`.
 *
 * @param {{ module: SyncInitInput }} module - Passing `SyncInitInput` directly is deprecated.
 *
 * @returns {InitOutput}
 */
export function initSync(module: { module: SyncInitInput } | SyncInitInput): InitOutput;

/**
 * If `module_or_path` is {RequestInfo} or {URL}, makes a request and
 * for everything else, calls `WebAssembly.instantiate` directly.
 *
 * @param {{ module_or_path: InitInput | Promise<InitInput> }} module_or_path - Passing `InitInput` directly is deprecated.
 *
 * @returns {Promise<InitOutput>}
 */
export default function __wbg_init (module_or_path?: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>): Promise<InitOutput>;
