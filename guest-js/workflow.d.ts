// What a workflow script has, beside plain ECMAScript: the types of the globals that hooks.js makes.
//
// In an editor, put a jsconfig.json beside your scripts (examples/jsconfig.json is one to copy): it checks every
// script against this file, without the browser's or Node's globals. For a single script, these two lines at its
// top do, but then the editor believes in the browser's globals too:
//
//     // @ts-check
//     /// <reference path="workflow.d.ts" />
//
// A script is the body of an async function, which an editor does not know. It goes on underlining
//   - `return` outside of a function (TS1108): never an error here;
//   - `await` at the top level of a script without `export` (TS1375), unless `moduleDetection` is `force`, as in
//     that jsconfig.json.
// Needs TypeScript 5.3 or newer. Scripts themselves are JavaScript: types go into comments.

// ── Running an agent ─────────────────────────────────────────────────────────────────────────────────────────

/**
 * Runs a subagent. Gives its final text or, with `schema`, the object that it answered, validated.
 *
 * Gives `null` when the agent ends without success, or answers nothing that satisfies the schema. Misuse and a
 * provider that breaks are a {@link WorkflowError}.
 *
 * The agent starts when this is called, not when it is awaited; it waits its turn if too many are running.
 *
 * @param prompt What the agent is to do. Not empty.
 * @param options See {@link AgentOptions}.
 * @example
 * const text = await agent("Which licence does this repository have?")
 * const found = await agent("List the open questions in docs/design.md.", {
 *   label: "questions",
 *   schema: {
 *     type: "object",
 *     properties: { questions: { type: "array", items: { type: "string" } } },
 *     required: ["questions"],
 *   },
 * })
 * for (const question of found?.questions ?? []) log(question)
 */
declare function agent<const S extends JsonSchema | undefined = undefined>(
  prompt: string,
  options?: AgentOptions<S>,
): Promise<AgentAnswer<S> | null>;

/**
 * The options of {@link agent}. One that is `undefined` counts as absent. One whose name begins with `_` is the script's
 * own and is ignored, with a warning. Any other that is not listed here is an error.
 *
 * A provider may ignore a *hint* that it cannot honour; observers see one warning. It cannot ignore a *guarantee*:
 * where it cannot give one, the call is `UNSUPPORTED_OPTION` before anything starts.
 */
interface AgentOptions<S extends JsonSchema | undefined = JsonSchema | undefined> {
  /** What people see the agent called. Default: the prompt's first line, at most 48 characters. May repeat. */
  label?: string | undefined;
  /** The phase the agent belongs to. Default: the last one that {@link phase} began. */
  phase?: string | undefined;
  /**
   * Guarantee: the answer is an object that satisfies this JSON Schema (2020-12, an object at the root, references
   * only within itself).
   *
   * Written in place, it types the answer. Held in a variable, it needs the JSDoc cast `@type {const}` for that, as
   * the examples have it; without, the answer is `unknown`.
   */
  schema?: S & Fanfold.Root<S>;
  /** Guarantee: the model provider that runs the agent. */
  provider?: string | undefined;
  /** Guarantee: the model that the agent runs on. */
  model?: string | undefined;
  /** Hint: how hard to think, in the provider's words. */
  effort?: string | undefined;
  /** Hint: which kind of agent to use, in the provider's words. */
  agentType?: string | undefined;
  /** Guarantee: the agent works in a worktree of its own, so that agents who edit files at once do not meet. */
  isolation?: "worktree" | undefined;
  /** Guarantee: the longest the agent may take, in milliseconds. One that takes longer ends without success. */
  timeoutMs?: number | undefined;
  /** Hint: the longest the agent may say nothing, in milliseconds. */
  stallMs?: number | undefined;
  /** Guarantee: how often an agent that ends without success is tried again. */
  retries?: number | undefined;
  /** The script's own. */
  [own: `_${string}`]: unknown;
}

/** What {@link agent} gives on success: text without a schema, an object with one. */
type AgentAnswer<S> = S extends undefined ? string : FromSchema<S>;

// ── Running many ─────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Calls every function at once and gives their results, in order. One that throws gives `null` in its place.
 *
 * A {@link WorkflowError} is not turned into `null`: it rejects the whole.
 *
 * @param thunks Functions, not promises: `() => agent(…)`. At most 4096 by default.
 * @example
 * const [pros, cons] = await parallel([() => agent("Argue for it."), () => agent("Argue against it.")])
 */
declare function parallel<const T extends readonly (() => unknown)[]>(
  thunks: T,
): Promise<{ -readonly [I in keyof T]: Awaited<ReturnType<T[I]>> | null }>;

/**
 * Sends each item through the stages, on its own: no item waits for another. Gives the last stage's results, in
 * the order of the items.
 *
 * A stage that throws makes its item `null` and skips the item's later stages; one that *returns* `null` goes on.
 * A {@link WorkflowError} rejects the whole.
 *
 * @param items At most 4096 by default.
 * @param stages At least one function `(prev, item, index)`.
 * @example
 * const checked = await pipeline(
 *   args.files,
 *   (file) => agent(`Review ${file}.`),
 *   (review, file) => agent(`Is this review of ${file} fair? ${review}`),
 * )
 */
declare function pipeline<T, A>(items: readonly T[], stage: Fanfold.Stage<T, T, A>): Promise<(Awaited<A> | null)[]>;
declare function pipeline<T, A, B>(
  items: readonly T[],
  stage1: Fanfold.Stage<T, T, A>,
  stage2: Fanfold.Stage<Awaited<A>, T, B>,
): Promise<(Awaited<B> | null)[]>;
declare function pipeline<T, A, B, C>(
  items: readonly T[],
  stage1: Fanfold.Stage<T, T, A>,
  stage2: Fanfold.Stage<Awaited<A>, T, B>,
  stage3: Fanfold.Stage<Awaited<B>, T, C>,
): Promise<(Awaited<C> | null)[]>;
declare function pipeline<T, A, B, C, D>(
  items: readonly T[],
  stage1: Fanfold.Stage<T, T, A>,
  stage2: Fanfold.Stage<Awaited<A>, T, B>,
  stage3: Fanfold.Stage<Awaited<B>, T, C>,
  stage4: Fanfold.Stage<Awaited<C>, T, D>,
): Promise<(Awaited<D> | null)[]>;
declare function pipeline<T, A, B, C, D, E>(
  items: readonly T[],
  stage1: Fanfold.Stage<T, T, A>,
  stage2: Fanfold.Stage<Awaited<A>, T, B>,
  stage3: Fanfold.Stage<Awaited<B>, T, C>,
  stage4: Fanfold.Stage<Awaited<C>, T, D>,
  stage5: Fanfold.Stage<Awaited<D>, T, E>,
): Promise<(Awaited<E> | null)[]>;
declare function pipeline<T, A, B, C, D, E, F>(
  items: readonly T[],
  stage1: Fanfold.Stage<T, T, A>,
  stage2: Fanfold.Stage<Awaited<A>, T, B>,
  stage3: Fanfold.Stage<Awaited<B>, T, C>,
  stage4: Fanfold.Stage<Awaited<C>, T, D>,
  stage5: Fanfold.Stage<Awaited<D>, T, E>,
  stage6: Fanfold.Stage<Awaited<E>, T, F>,
): Promise<(Awaited<F> | null)[]>;
declare function pipeline<T>(
  items: readonly T[],
  ...stages: Fanfold.SevenOrMore<Fanfold.Stage<any, T, unknown>>
): Promise<unknown[]>;

// ── Running a workflow inside ─────────────────────────────────────────────────────────────────────────────────

/**
 * Runs another workflow inside of this one, in a sandbox of its own, and gives the value that it returns. It shares
 * everything that is counted: agents, budget, slots; cancelling ends both. Its agents and phases show among those of
 * this script.
 *
 * It fails as an ordinary `Error` where that workflow threw one of its own, else as a {@link WorkflowError}.
 *
 * @param target The name of a saved workflow, a path to one, or the text of one with its header.
 * @param args What its `args` are.
 * @example
 * const audits = await parallel(["core", "cli"].map((part) => () => workflow("audit", { part })))
 */
declare function workflow(target: string | { scriptPath: string } | { script: string }, args?: unknown): Promise<any>;

/** The output tokens that the agents of the run may take, workflows inside of it included. */
declare const budget: {
  /** How many; `null` where nobody set a budget. */
  readonly total: number | null;
  /** How many they have taken, as far as their provider tells. */
  readonly spent: () => number;
  /** How many are left: at least 0, `Infinity` without a total. Once none are, no more agents start (`AGENT_CAP`). */
  readonly remaining: () => number;
};

// ── Telling what goes on ─────────────────────────────────────────────────────────────────────────────────────

/**
 * Begins a phase: agents started from now on belong to it, unless their `phase` option says otherwise. Phases need
 * not be declared in the metadata.
 *
 * @param title Not empty.
 */
declare function phase(title: string): undefined;

/**
 * Shows a message to whoever watches the run.
 *
 * @param message A string. Other values are an error: use `JSON.stringify`.
 */
declare function log(message: string): undefined;

// ── Input ────────────────────────────────────────────────────────────────────────────────────────────────────

/** What the caller passed, exactly as given: any JSON value, `undefined` when nothing was. */
declare const args: any;

/**
 * The metadata of a script that carries its own, as `export const meta = {…}` before anything else. It is read
 * without being evaluated: literals only. The JSDoc comment `@type {WorkflowMeta}` before it has it checked.
 */
interface WorkflowMeta {
  /** A short name in kebab-case. Not empty. */
  name: string;
  /** What the workflow does. Not empty. */
  description: string;
  /** When to choose this workflow. */
  whenToUse?: string;
  /** The phases the author plans, for those who watch. A run may enter others and skip these. */
  phases?: {
    /** What {@link phase} will be called with. Not empty. */
    title: string;
    /** What happens in it. */
    detail?: string;
    /** The model provider its agents are meant for. */
    provider?: string;
    /** The model its agents are meant for. */
    model?: string;
  }[];
  /**
   * What the script takes as its {@link args}: a JSON Schema with an object at its root. A run with other args does not
   * start (`INVALID_ARGUMENT`).
   */
  args?: JsonSchema;
}

// ── Of scripts with a header ─────────────────────────────────────────────────────────────────────────────────

// Those whose metadata stands beside them have none of these.

/** Shows values to whoever watches, as {@link log} does: texts as they are, other data as JSON. */
declare const console: {
  readonly [method in "log" | "info" | "debug" | "warn" | "error" | "trace" | "dir" | "table" | "group"]: (
    ...values: unknown[]
  ) => void;
} & {
  readonly groupEnd: () => void;
  readonly assert: (condition?: unknown, ...values: unknown[]) => void;
};

/**
 * Calls a function later. The host keeps the time, and `Date` moves on by it. What still waits when the script ends,
 * or when the run is cancelled, is forgotten.
 *
 * @param callback A function. What it throws is told to observers and harms nothing else.
 * @param delay In milliseconds, at least 1 and less than 2³¹.
 */
declare function setTimeout(callback: (...args: any[]) => unknown, delay?: number, ...args: unknown[]): number;

/** Forgets what {@link setTimeout} was to call, if it has not called it. */
declare function clearTimeout(timer?: number): void;

/** A URL, as the URL Standard has it (https://url.spec.whatwg.org/). */
declare class URL {
  /** @throws TypeError for what is no URL */
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

/** The parameters of a URL. */
declare class URLSearchParams implements Iterable<[string, string]> {
  constructor(init?: string | Iterable<readonly [string, string]> | Record<string, string>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}

// ── Errors ───────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * What hooks throw on misuse, on a limit and when a provider breaks. A script may catch it, but cannot make one:
 * there is no such class, and an object that merely looks like it is an ordinary error.
 *
 * @example
 * try {
 *   await agent("…")
 * } catch (error) {
 *   if (error.name !== "WorkflowError" || error.code !== "AGENT_CAP") throw error
 *   log("no more agents")
 * }
 */
interface WorkflowError extends Error {
  readonly name: "WorkflowError";
  /** What happened. Codes are stable, messages are not. */
  readonly code: WorkflowErrorCode;
  /** Where in a value, such as `schema.properties.title` or `thunks[2]`. */
  readonly path?: string;
}

/** The codes of failures. Those of the first group reach a script; those of the second end it. */
type WorkflowErrorCode =
  /** A hook was given something that it does not take. */
  | "INVALID_ARGUMENT"
  /** An option of `agent()` that nobody knows, or a guarantee that the provider cannot give. */
  | "UNSUPPORTED_OPTION"
  /** A schema that cannot be enforced. */
  | "UNSUPPORTED_SCHEMA"
  /** More `agent()` or `workflow()` calls than the run may make, or its budget is used up. */
  | "AGENT_CAP"
  /** More items than one `parallel()` or `pipeline()` takes. */
  | "ITEM_CAP"
  /** The provider could not start the agent. */
  | "AGENT_START"
  /** The provider broke while the agent ran. */
  | "AGENT_RESULT"
  /** A text or value that enters or leaves the script is too large, or there are too many of them. */
  | "OUTPUT_LIMIT"
  /** The run was cancelled. */
  | "CANCELLED"

  /** The script is not valid JavaScript. */
  | "SCRIPT_PARSE"
  /** The metadata is not what {@link WorkflowMeta} says. */
  | "META_INVALID"
  /** The script returned something that is not plain JSON data. */
  | "RESULT_UNSERIALIZABLE"
  /** The script computed too long without awaiting, or the run took too long. */
  | "TIME_LIMIT"
  /** The script computed too much over the whole run. */
  | "CPU_LIMIT"
  /** The script used too much memory. */
  | "MEMORY_LIMIT"
  /** The script recursed too deeply. */
  | "STACK_LIMIT"
  /** The script awaited something that nothing in flight could settle. */
  | "DEADLOCK"
  /** The sandbox failed: a fault of Fanfold, not of the script. */
  | "INTERNAL";

// ── Schemas ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A JSON Schema (2020-12): the keywords that type an answer. Others are allowed, and leave the type as it is. */
type JsonSchema =
  | boolean
  | {
      /** `"object"`, `"array"`, `"string"`, `"number"`, `"integer"`, `"boolean"`, `"null"`, or a list of these. */
      readonly type?: string | readonly string[];
      /** The one value it may be. */
      readonly const?: unknown;
      /** The values it may be. */
      readonly enum?: readonly unknown[];
      /** At least one of these fits. */
      readonly anyOf?: readonly JsonSchema[];
      /** Exactly one of these fits. */
      readonly oneOf?: readonly JsonSchema[];
      /** An object's properties. Those that are not `required` may be missing. */
      readonly properties?: { readonly [name: string]: JsonSchema };
      /** The properties that an object must have. */
      readonly required?: readonly string[];
      /** What an object's other properties are; `false` for none. */
      readonly additionalProperties?: JsonSchema;
      /** What an array's items are. */
      readonly items?: JsonSchema;
      readonly [keyword: string]: unknown;
    };

/**
 * The values that a JSON Schema allows, as told by `type` (one or a list), `properties`, `required`, `items`,
 * `additionalProperties` (of an object without `properties`), `enum`, `const`, `anyOf` and `oneOf`. What these
 * leave open is `unknown`, and so is all of a schema that is not constant to TypeScript.
 */
type FromSchema<S> = S extends false
  ? never
  : Fanfold.ByType<S> &
      Fanfold.ByEnum<S> &
      Fanfold.ByConst<S> &
      Fanfold.ByBranches<S, "anyOf"> &
      Fanfold.ByBranches<S, "oneOf">;

/** What the declarations above are made of. Not for scripts. */
declare namespace Fanfold {
  /** A stage of {@link pipeline}: `prev` is what the stage before returned, in the first stage the item. */
  type Stage<Prev, Item, Next> = (prev: Prev, item: Item, index: number) => Next;

  type SevenOrMore<S> = [S, S, S, S, S, S, S, ...S[]];

  /** What a schema must be as well at its root: of type object, where its type is known. */
  type Root<S> = S extends boolean
    ? { readonly type: "object" }
    : S extends { readonly type: infer T }
      ? string extends T
        ? unknown
        : T extends "object"
          ? unknown
          : { readonly type: "object" }
      : unknown;

  // Each keyword narrows what the others leave, so every one gives a type and FromSchema intersects them. One that
  // is absent, or that says nothing to the type system, gives `unknown`, which leaves an intersection as it is.
  type ByType<S> = S extends { readonly type: infer T }
    ? OfType<T extends readonly unknown[] ? T[number] : T, S>
    : unknown;
  type ByEnum<S> = S extends { readonly enum: readonly (infer V)[] } ? V : unknown;
  type ByConst<S> = S extends { readonly const: infer V } ? V : unknown;
  type ByBranches<S, K extends string> = S extends { readonly [P in K]: readonly (infer B)[] }
    ? FromSchema<B>
    : unknown;

  type OfType<T, S> = T extends "object"
    ? FromObject<S>
    : T extends "array"
      ? FromArray<S>
      : T extends "string"
        ? string
        : T extends "number" | "integer"
          ? number
          : T extends "boolean"
            ? boolean
            : T extends "null"
              ? null
              : unknown;

  // With `prefixItems`, `items` speaks of the others only.
  type FromArray<S> = S extends { readonly prefixItems: unknown }
    ? unknown[]
    : S extends { readonly items: infer I }
      ? FromSchema<I>[]
      : unknown[];

  // The last step makes one object of the three, which is how editors then show it.
  type FromObject<S> = S extends { readonly properties: infer P }
    ? { [K in keyof P & RequiredOf<S>]: FromSchema<P[K]> } & {
        [K in Exclude<keyof P, RequiredOf<S>>]?: FromSchema<P[K]>;
      } & { [K in Exclude<RequiredOf<S>, keyof P>]: unknown } extends infer O
      ? { [K in keyof O]: O[K] }
      : never
    : S extends { readonly additionalProperties: infer V }
      ? { [name: string]: FromSchema<V> }
      : { [name: string]: unknown };

  type RequiredOf<S> = S extends { readonly required: readonly (infer K extends string)[] } ? K : never;
}
