// Type-checks scripts against guest-js/workflow.d.ts: the samples beside this file, the examples, and every complete
// script in the authoring guide. Not for what scripts do when they run.
//
// A sample says which errors it must give: `// expect TS2345` stands on the line above each. Any other error fails
// it, and so does an expected one that does not come. The declarations must name the error codes that the engine has.
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const declarations = join(root, "guest-js/workflow.d.ts");
const errorCodes = join(root, "crates/types/src/error.rs");

const scripts = new Map();
addFolder(join(here, "samples"));
addFolder(join(root, "examples"));
addGuide(join(root, "docs/scripts.md"));

const program = createProgram();
const subjects = [declarations, ...scripts.keys()];
const failed = subjects.filter((file) => {
  const faults = check(file);
  console.log(`${faults.length === 0 ? "ok    " : "FAILED"} ${relative(root, file)}`);
  for (const fault of faults) console.log(`       ${fault}`);
  return faults.length > 0;
});
console.log(`\n${subjects.length - failed.length} passed, ${failed.length} failed`);
process.exitCode = failed.length > 0 ? 1 : 0;

function addFolder(folder) {
  const names = readdirSync(folder).filter((name) => /\.[jt]s$/.test(name));
  if (names.length === 0) throw new Error(`there is no script in ${folder}`);
  for (const name of names.sort()) scripts.set(join(folder, name), readFileSync(join(folder, name), "utf8"));
}

// The blocks ```js of a guide; those marked ```js fragment are no complete scripts.
function addGuide(file) {
  const blocks = [...readFileSync(file, "utf8").matchAll(/^```js\n([\s\S]*?)^```$/gm)];
  if (blocks.length === 0) throw new Error(`there is no script in ${file}`);
  blocks.forEach(([, text], i) => scripts.set(`${file}.${i + 1}.js`, text));
}

// A script is the body of an async function. The wrapper's opening is line 0, as it is when a script runs. A header
// `export const meta` loses its `export`, which no function body can have. A sample in TypeScript is no script.
function wrapped(file, text) {
  if (file.endsWith(".ts")) return `// line 0\n${text}`;
  return `async function script() {\n${text.replace(/^export const meta\b/m, "       const meta")}\n}`;
}

function createProgram() {
  const { config, error } = ts.readConfigFile(join(here, "tsconfig.json"), ts.sys.readFile);
  if (error) throw new Error(ts.flattenDiagnosticMessageText(error.messageText, "\n"));
  const { options, errors } = ts.parseJsonConfigFileContent(config, ts.sys, here);
  if (errors.length > 0) throw new Error(ts.flattenDiagnosticMessageText(errors[0].messageText, "\n"));

  const host = ts.createCompilerHost(options);
  const { readFile, fileExists } = host;
  host.readFile = (file) => {
    const text = scripts.get(resolve(file));
    return text === undefined ? readFile(file) : wrapped(file, text);
  };
  host.fileExists = (file) => scripts.has(resolve(file)) || fileExists(file);
  const program = ts.createProgram([declarations, ...scripts.keys()], options, host);
  const broken = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()];
  if (broken.length > 0) throw new Error(ts.flattenDiagnosticMessageText(broken[0].messageText, "\n"));
  return program;
}

// What is wrong with a file, in words; nothing when it gives exactly the errors that it says.
function check(file) {
  const lines = (scripts.get(file) ?? "").split("\n");
  const expected = lines.flatMap((text, i) => {
    const code = /\/\/ expect TS(\d+)/.exec(text)?.[1];
    return code === undefined ? [] : [{ line: i + 2, code: Number(code) }];
  });
  const faults = file === declarations ? differingCodes() : [];
  for (const { start, code, messageText } of ts.getPreEmitDiagnostics(program, program.getSourceFile(file))) {
    const place = ts.getLineAndCharacterOfPosition(program.getSourceFile(file), start ?? 0);
    const line = scripts.has(file) ? place.line : place.line + 1;
    const found = expected.findIndex((error) => error.line === line && error.code === code);
    if (found >= 0) expected.splice(found, 1);
    else faults.push(`${basename(file)}:${line}: TS${code} ${ts.flattenDiagnosticMessageText(messageText, "\n")}`);
  }
  for (const { line, code } of expected) faults.push(`${basename(file)}:${line}: TS${code} was expected`);
  return faults;
}

function differingCodes() {
  const codes = (file, pattern) => new Set([...readFileSync(file, "utf8").matchAll(pattern)].map(([, code]) => code));
  const engine = codes(errorCodes, /^ *\w+ = "([A-Z_]+)",$/gm);
  const declared = codes(declarations, /^ *\| "([A-Z_]+)"/gm);
  if (engine.size === 0) return [`there is no error code in ${relative(root, errorCodes)}`];
  return [
    ...[...engine].filter((code) => !declared.has(code)).map((code) => `WorkflowErrorCode lacks ${code}`),
    ...[...declared].filter((code) => !engine.has(code)).map((code) => `the engine has no code ${code}`),
  ];
}
