// The TypeScript library of the Agent Client Protocol as a client of `zeph acp`.
//
// Arguments: the program, a folder with an empty project and the file of the scripted provider, and the folder with the
// packages of npm. The library checks each request of the agent with its schemas, and `ask` each response. The first agent
// gets a client with files and terminals, the second one a client without both.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, openSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [program, root, modules] = process.argv.slice(2);
const sdk = join(modules, "@agentclientprotocol/sdk/dist/v1");
const acp = await import(pathToFileURL(join(sdk, "stable/acp.js")));
const schemas = await import(pathToFileURL(join(sdk, "schema/zod.gen.js")));
const { agent: methods, client: ofClient } = acp.methods;

const project = join(root, "project");
/** The time limit of each step, in milliseconds. */
const STEP = 60_000;
const SECONDS = `98${process.pid}`;

/** The schemas of the responses. */
const RESPONSES = {
  [methods.initialize]: schemas.zInitializeResponse,
  [methods.session.new]: schemas.zNewSessionResponse,
  [methods.session.load]: schemas.zLoadSessionResponse,
  [methods.session.resume]: schemas.zResumeSessionResponse,
  [methods.session.list]: schemas.zListSessionsResponse,
  [methods.session.delete]: schemas.zDeleteSessionResponse,
  [methods.session.close]: schemas.zCloseSessionResponse,
  [methods.session.setMode]: schemas.zSetSessionModeResponse,
  [methods.session.setConfigOption]: schemas.zSetSessionConfigOptionResponse,
  [methods.session.prompt]: schemas.zPromptResponse,
};

/** The library reports messages that it cannot use on the console. Each fails the run, except one that is expected. */
const faults = [];
console.error = (...parts) => faults.push(parts.map((part) => JSON.stringify(part)).join(" "));

const call = (tool, input) => ({ calls: [{ tool, input }] });
const said = (text, ...results) => ({ text, ...(results.length > 0 && after(...results)) });
const after = (...results) => ({ expect: { tool_result_contains: results } });

/** Sets the responses of the model for the sessions that open from now on. */
function scenario(...steps) {
  writeFileSync(join(root, "scenario.json"), JSON.stringify({ steps }));
}

const inProject = (name) => existsSync(join(project, name));

function isRunning(text) {
  return readdirSync("/proc").some((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      return readFileSync(`/proc/${entry}/cmdline`, "utf8").includes(text);
    } catch {
      return false;
    }
  });
}

async function within(name, promise) {
  const done = new AbortController();
  const late = pause(STEP, null, { signal: done.signal }).then(() => assert.fail(`${name} took more than ${STEP} ms`));
  late.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    done.abort();
  }
}

async function until(name, check) {
  const start = Date.now();
  while (!check()) {
    assert(Date.now() - start < STEP, `${name} did not happen within ${STEP} ms`);
    await pause(20);
  }
}

/** A command in a terminal of the client. */
class Terminal {
  output = "";
  isReleased = false;
  status = null;

  constructor({ command, args = [], env = [], cwd }) {
    const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    const stdio = ["ignore", "pipe", "pipe"];
    this.child = spawn(command, args, { cwd, env: { ...process.env, ...variables }, stdio });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => (this.output += text));
    }
    this.exit = new Promise((resolve) => {
      this.child.on("close", (exitCode, signal) => resolve((this.status = { exitCode, signal })));
    });
  }
}

/** A client with unsaved texts and terminals. */
class Editor {
  decision = "reject_once";
  questions = [];
  texts = new Map();
  terminals = [];
  updates = [];

  app() {
    const terminal = ({ params }) => this.terminals[Number(params.terminalId)];
    return acp
      .client({ name: "typescript" })
      .onRequest(ofClient.session.requestPermission, ({ params }) => {
        this.questions.push(params);
        const chosen = params.options.filter((option) => option.kind === this.decision);
        assert.equal(chosen.length, 1);
        return { outcome: { outcome: "selected", optionId: chosen[0].optionId } };
      })
      .onNotification(ofClient.session.update, ({ params }) => void this.updates.push(params))
      .onRequest(ofClient.fs.readTextFile, ({ params }) => {
        const { path } = params;
        if (!this.texts.has(path) && !existsSync(path)) throw acp.RequestError.resourceNotFound(path);
        return { content: this.texts.get(path) ?? readFileSync(path, "utf8") };
      })
      .onRequest(ofClient.fs.writeTextFile, ({ params }) => {
        this.texts.set(params.path, params.content);
        return {};
      })
      .onRequest(ofClient.terminal.create, ({ params }) => {
        assert(params.outputByteLimit > 0, "there is no limit of the output");
        return { terminalId: String(this.terminals.push(new Terminal(params)) - 1) };
      })
      .onRequest(ofClient.terminal.output, (context) => {
        const { output, status } = terminal(context);
        return { output, truncated: false, ...(status && { exitStatus: status }) };
      })
      .onRequest(ofClient.terminal.waitForExit, (context) => terminal(context).exit)
      .onRequest(ofClient.terminal.kill, (context) => {
        terminal(context).child.kill("SIGKILL");
        return {};
      })
      .onRequest(ofClient.terminal.release, (context) => {
        const released = terminal(context);
        assert(!released.isReleased, "the terminal was released twice");
        released.isReleased = true;
        released.child.kill("SIGKILL");
        return {};
      });
  }

  /** The updates of a session of one kind. */
  of(session, kind) {
    const updates = this.updates.filter((it) => it.sessionId === session).map((it) => it.update);
    return updates.filter((update) => update.sessionUpdate === kind);
  }

  text(session, kind = "agent_message_chunk") {
    return this.of(session, kind).map((update) => update.content.text).join("");
  }

  /** The calls of a session, each with all its updates merged. */
  calls(session) {
    const calls = new Map(this.of(session, "tool_call").map((it) => [it.toolCallId, { ...it }]));
    for (const update of this.of(session, "tool_call_update")) {
      assert(calls.has(update.toolCallId), "an update precedes its call");
      Object.assign(calls.get(update.toolCallId), update);
    }
    return [...calls.values()];
  }

  call(session, kind) {
    return this.calls(session).findLast((it) => it.kind === kind);
  }
}

/** A running agent and its client. Each request has a time limit. */
class Connection {
  constructor(editor, agent, child) {
    Object.assign(this, { editor, agent, child });
  }

  async ask(method, params) {
    const response = await within(method, this.agent.request(method, params));
    return RESPONSES[method].parse(response);
  }

  open() {
    return this.ask(methods.session.new, { cwd: project, mcpServers: [] });
  }

  async prompt(sessionId, text) {
    return (await this.ask(methods.session.prompt, { sessionId, prompt: [{ type: "text", text }] })).stopReason;
  }

  async refused(code, method, params) {
    await assert.rejects(this.ask(method, params), (error) => error.code === code);
  }
}

/** Runs `use` with an initialized connection. At the end, the agent has ended because its input ended. */
async function connected(editor, clientCapabilities, use) {
  const log = openSync(join(root, "stderr.txt"), "a");
  const child = spawn(program, ["acp"], { cwd: project, stdio: ["pipe", "pipe", log] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  try {
    const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
    const connection = editor.app().connect(stream);
    const it = new Connection(editor, connection.agent, child);
    const clientInfo = { name: "typescript", version: "1" };
    const params = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities, clientInfo };
    const started = await it.ask(methods.initialize, params);
    assert.equal(started.protocolVersion, 1);
    assert.equal(started.agentInfo.name, "zeph");
    assert.deepEqual(started.authMethods, []);
    const result = await use(it);
    child.stdin.end();
    assert.equal(await within("the end of the agent", ended), 0);
    connection.close();
    return result;
  } finally {
    child.kill("SIGKILL");
  }
}

/** A rejected command does not run; an approved one runs in a terminal of the client. */
async function permissions(it) {
  const { editor } = it;
  scenario(
    call("bash", { command: "touch denied.txt" }),
    said("Not allowed."),
    call("bash", { command: "echo of-the-terminal; touch allowed.txt; exit 3" }),
    said("Exit code seen.", "of-the-terminal", "3"),
  );
  const { sessionId, modes, configOptions } = await it.open();
  assert.equal(modes.currentModeId, "ask");
  assert.deepEqual(configOptions.map((option) => option.id).slice(0, 2), ["mode", "model"]);
  assert.equal(await it.prompt(sessionId, "deny"), "end_turn");
  assert.equal(editor.questions.length, 1);
  assert.equal(editor.call(sessionId, "execute").status, "failed");
  assert(!inProject("denied.txt") && editor.terminals.length === 0);

  editor.decision = "allow_once";
  assert.equal(await it.prompt(sessionId, "allow"), "end_turn");
  assert.equal(editor.questions.length, 2);
  assert(inProject("allowed.txt"));
  const [terminal] = editor.terminals;
  await until("the release", () => terminal.isReleased);
  assert.equal(terminal.output, "of-the-terminal\n");
  assert(editor.text(sessionId).endsWith("Exit code seen."));
  const shown = editor.of(sessionId, "tool_call_update").flatMap((update) => update.content ?? []);
  assert(shown.some((part) => part.type === "terminal"));
  return sessionId;
}

/** Files are read and written in the client: an unsaved text, and a new file. */
async function files(it) {
  const { editor } = it;
  const [saved, created] = [join(project, "saved.txt"), join(project, "new.txt")];
  writeFileSync(saved, "on the disk\n");
  editor.texts.set(saved, "unsaved text\n");
  scenario(
    call("read", { path: "saved.txt" }),
    { ...call("write", { path: "new.txt", content: "of the agent\n" }), ...after("unsaved text") },
    said("Written.", "new.txt"),
  );
  const { sessionId } = await it.open();
  assert.equal(await it.prompt(sessionId, "files"), "end_turn");
  assert.equal(editor.texts.get(created), "of the agent\n");
  assert(!existsSync(created));
  const edit = editor.call(sessionId, "edit");
  assert.equal(edit.status, "completed");
  assert.equal(edit.content.find((part) => part.type === "diff").newText, "of the agent\n");
  assert.equal(edit.locations[0].path, created);
}

/** A cancelled command leaves no process, and the session continues. */
async function cancel(it) {
  const { editor } = it;
  const command = `echo begun; touch begun.txt; sleep ${SECONDS}; touch after.txt`;
  scenario(call("bash", { command }), said("Continued."));
  const { sessionId } = await it.open();
  editor.decision = "allow_once";
  const sleeping = () => isRunning(`sleep\0${SECONDS}`);
  const prompt = it.prompt(sessionId, "wait");
  await until("the start of the command", () => inProject("begun.txt") && sleeping());
  await it.agent.notify(methods.session.cancel, { sessionId });
  assert.equal(await prompt, "cancelled");
  await until("the end of the command", () => !sleeping());
  assert.equal(editor.call(sessionId, "execute").status, "failed");
  await until("the release", () => editor.terminals.every((terminal) => terminal.isReleased));
  assert.equal(await it.prompt(sessionId, "continue"), "end_turn");
  assert(editor.text(sessionId).endsWith("Continued."));
  unlinkSync(join(project, "begun.txt"));
  assert(!inProject("after.txt"));
}

/** Mode and options agree, and mode `plan` runs no command that writes. */
async function modes(it) {
  const { editor } = it;
  scenario(call("bash", { command: "touch planned.txt" }), said("Planned."));
  const { sessionId, configOptions } = await it.open();
  const asked = editor.questions.length;
  await it.ask(methods.session.setMode, { sessionId, modeId: "plan" });
  await until("the mode", () => editor.of(sessionId, "current_mode_update").at(-1)?.currentModeId === "plan");
  assert.equal(await it.prompt(sessionId, "plan"), "end_turn");
  assert.equal(editor.questions.length, asked);
  assert(!inProject("planned.txt"));
  const option = { sessionId, configId: "mode", value: "auto-edit" };
  const changed = await it.ask(methods.session.setConfigOption, option);
  assert.deepEqual(changed.configOptions.map(({ id }) => id), configOptions.map(({ id }) => id));
  assert.equal(changed.configOptions[0].currentValue, "auto-edit");
  await it.refused(-32602, methods.session.setConfigOption, { ...option, value: "none" });
}

/** A line that is not JSON has an error without an id, which the library reports, and the connection continues. */
async function malformed(it) {
  const error = () => faults.findIndex((text) => text.includes("unknown request") && text.includes("null"));
  it.child.stdin.write('{"jsonrpc": "2.0", "id"\n');
  await until("the error", () => error() >= 0);
  faults.splice(error(), 1);
  await it.ask(methods.session.list, {});
}

async function firstAgent() {
  const editor = new Editor();
  const capabilities = { fs: { readTextFile: true, writeTextFile: true }, terminal: true, session: { notices: {} } };
  const session = await connected(editor, capabilities, async (it) => {
    const first = await permissions(it);
    await files(it);
    await cancel(it);
    await modes(it);
    await malformed(it);
    return first;
  });
  assert(editor.of(session, "available_commands_update").length > 0);
  console.log(`files and terminals: ${editor.questions.length} questions, ${editor.terminals.length} terminals`);
  return session;
}

/** Another process: the stored session, and commands that run in the agent. */
async function secondAgent(sessionId) {
  const editor = new Editor();
  const here = { cwd: project, mcpServers: [], sessionId };
  scenario(call("bash", { command: "echo local > local.txt" }), said("Loaded."));
  await connected(editor, {}, async (it) => {
    const { sessions } = await it.ask(methods.session.list, { cwd: project });
    const listed = sessions.find((info) => info.sessionId === sessionId);
    assert(listed.title && listed.cwd === project);
    await it.ask(methods.session.load, here);
    assert.equal(editor.text(sessionId, "user_message_chunk"), "denyallow");
    assert.equal(editor.text(sessionId), "Not allowed.Exit code seen.");
    assert.deepEqual(editor.calls(sessionId).map((it) => it.status), ["failed", "completed"]);
    const replay = JSON.stringify(editor.updates);
    assert(replay.includes("of-the-terminal") && !replay.includes("terminalId"));
    editor.decision = "allow_once";
    assert.equal(await it.prompt(sessionId, "local"), "end_turn");
    assert.equal(readFileSync(join(project, "local.txt"), "utf8"), "local\n");
    await cancel(it);
    await it.ask(methods.session.close, { sessionId });
    await it.refused(-32002, methods.session.prompt, { sessionId, prompt: [{ type: "text", text: "closed" }] });
    await it.ask(methods.session.resume, here);
    await it.ask(methods.session.delete, { sessionId });
    const left = (await it.ask(methods.session.list, {})).sessions.map((info) => info.sessionId);
    assert(!left.includes(sessionId));
    await it.refused(-32002, methods.session.load, here);
    console.log(`stored sessions: ${sessions.length} listed, ${editor.updates.length} updates`);
  });
}

await secondAgent(await firstAgent());
assert.deepEqual(faults, []);
