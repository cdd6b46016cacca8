// What the declarations infer, type by type.
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<Expected>() {
  return <Actual>(_value: Actual, ..._same: Equal<Actual, Expected> extends true ? [] : [never]) => {};
}

// ── agent ──
is<string | null>()(await agent("a"));
is<string | null>()(await agent("a", {}));
is<string | null>()(await agent("a", { label: "l", phase: undefined, model: "m", timeoutMs: 1000 }));
is<string | null>()(await agent("a", { schema: undefined }));

const finding = {
  type: "object",
  properties: {
    title: { type: "string" },
    line: { type: "integer", minimum: 1 },
    severity: { enum: ["low", "high"] },
    tags: { type: "array", items: { type: "string" } },
  },
  required: ["title", "severity"],
  additionalProperties: false,
} as const;
type Finding = { title: string; severity: "low" | "high"; line?: number; tags?: string[] };
is<Finding | null>()(await agent("a", { schema: finding }));
is<{ found: Finding[] } | null>()(
  await agent("a", {
    schema: { type: "object", properties: { found: { type: "array", items: finding } }, required: ["found"] },
  }),
);
// Sometimes with a schema.
is<string | Finding | null>()(await agent("a", { schema: args.deep ? finding : undefined }));

// Written in place, a schema needs no `as const`.
is<{ ok: boolean } | null>()(
  await agent("a", { schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } }),
);
// A schema that TypeScript does not know as a constant.
const widened = { type: "object", properties: { ok: { type: "boolean" } } };
is<unknown>()(await agent("a", { schema: widened }));
is<unknown>()(await agent("a", { schema: args.schema }));
declare const anything: AgentOptions;
is<unknown>()(await agent("a", anything));

// ── schemas ──
declare function of<const S extends JsonSchema>(schema: S): FromSchema<S>;
is<unknown>()(of({}));
is<unknown>()(of(true));
is<never>()(of(false));
is<string>()(of({ type: "string", pattern: "^a" }));
is<number>()(of({ type: "number" }));
is<boolean>()(of({ type: "boolean" }));
is<null>()(of({ type: "null" }));
is<string | null>()(of({ type: ["string", "null"] }));
is<number | string[]>()(of({ type: ["array", "integer"], items: { type: "string" } }));
is<"a" | 2 | null>()(of({ enum: ["a", 2, null] }));
is<"a" | null>()(of({ type: ["string", "null"], enum: ["a", null] }));
is<"v1">()(of({ const: "v1" }));
is<unknown[]>()(of({ type: "array" }));
is<unknown[]>()(of({ type: "array", prefixItems: [{ type: "string" }], items: { type: "number" } }));
is<number[][]>()(of({ type: "array", items: { type: "array", items: { type: "number" } } }));
is<{ [name: string]: unknown }>()(of({ type: "object" }));
is<{ [name: string]: number }>()(of({ type: "object", additionalProperties: { type: "number" } }));
is<{ a: string; b: unknown }>()(of({ type: "object", properties: { a: { type: "string" } }, required: ["a", "b"] }));
is<{ a?: string }>()(of({ type: "object", properties: { a: { type: "string" } } }));
is<string | number>()(of({ anyOf: [{ type: "string" }, { type: "number" }] }));
is<{ kind: "a"; n: number } | { kind: "b" }>()(
  of({
    oneOf: [
      { type: "object", properties: { kind: { const: "a" }, n: { type: "number" } }, required: ["kind", "n"] },
      { type: "object", properties: { kind: { const: "b" } }, required: ["kind"] },
    ],
  }),
);
// Branches that say nothing to the type system leave the type beside them alone.
is<{ a?: string }>()(
  of({ type: "object", properties: { a: { type: "string" } }, anyOf: [{ required: ["a"] }, { minProperties: 1 }] }),
);
// Not told by these keywords, or wrong.
is<unknown>()(of({ $ref: "#/$defs/x", $defs: { x: { type: "string" } } }));
is<unknown>()(of({ type: "strnig" }));
is<unknown>()(of({ properties: { a: { type: "string" } } }));

// ── parallel ──
is<[number | null, string | null, string | null]>()(await parallel([() => 1, async () => "b", () => agent("c")]));
is<(string | null)[]>()(await parallel(["a", "b"].map((x) => () => agent(x))));
is<[]>()(await parallel([]));
is<[{ ok: boolean } | null]>()(
  await parallel([
    () => agent("a", { schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } }),
  ]),
);

// ── pipeline ──
is<(number | null)[]>()(await pipeline(["a"], (prev, item, index) => prev.length + item.length + index));
is<(string | null)[]>()(await pipeline([1, 2] as const, (n) => agent(`${n}`)));
is<(boolean | null)[]>()(
  await pipeline(
    ["a", "b"],
    (file) => agent(file, { schema: finding }),
    (found, file, index) => {
      is<Finding | null>()(found);
      is<string>()(file);
      is<number>()(index);
      return found !== null;
    },
  ),
);
is<(6 | null)[]>()(
  await pipeline(
    [0],
    async () => 1 as const,
    (p) => (is<1>()(p), 2 as const),
    async (p) => (is<2>()(p), 3 as const),
    (p) => (is<3>()(p), 4 as const),
    async (p) => (is<4>()(p), 5 as const),
    (p) => (is<5>()(p), 6 as const),
  ),
);
// The first stage gets items as they are, later ones what was awaited.
is<(number | null)[]>()(await pipeline([Promise.resolve(1)], async (p) => (await p) + 1, (n) => n + 1));

// ── the rest ──
is<undefined>()(phase("a"));
is<undefined>()(log("a"));
is<any>()(args);
declare const error: WorkflowError;
is<WorkflowErrorCode>()(error.code);
is<string | undefined>()(error.path);
