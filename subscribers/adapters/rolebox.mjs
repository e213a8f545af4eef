// The five calls by which an agent in Node lets the hooks of its role take part, each in one line. Node >= 18.
//
//     import { Rolebox } from "./rolebox.mjs";
//
//     const rolebox = new Rolebox({ session: "s1", agent: "my-agent", role: "reviewer" });
//     text = await rolebox.chatMessage(text);
//     system = await rolebox.systemTransform(system);
//     args = await rolebox.toolBefore("write", args);
//     output = await rolebox.toolAfter("write", args, await run(args));
//     await rolebox.event("session.idle", {});
//
// Each call puts one event to the hooks and returns its subject as they left it. With a last argument `core`, a
// function, it does so twice: the hooks of phase "before", the agent's own step, the hooks of phase "after".
// Without, the hooks of both phases run, in this order.
//
// It speaks POST /api/ask of `prxbus up`. Address and token: given, else PRXBUS_API_TOKEN, else the files
// http-address and http-token of the bus's directory. No trouble of the bus is the agent's: without an answer a
// call returns what it was given, and says why in `problem`. What somebody refuses is not passed over: it throws
// NotAllowed, because a decider may guard the very tool that a hook of a role only looks at.

import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join, resolve } from "node:path";

/** How long a call waits for hooks, for each of its asks. */
export const SECONDS = 10;

/** What the way to the bus and back may take beyond that. */
const GRACE_SECONDS = 2;

/** Depth of whoever cannot say how deep it is, as for every client. */
const DEEPEST = 7;

const TOPIC = "prx.lifecycle.";

/** Types of `event` that are events of the catalogue; any other one is an event of its own. */
const TYPES = {
  "session.created": "session_start",
  "session.deleted": "session_end",
  "session.reset": "session_reset",
  "session.idle": "turn_complete",
  "session.error": "error",
};

/** Somebody refuses it, or wants the user to be asked: `verdict` is "deny" or "ask". */
export class NotAllowed extends Error {
  constructor(decision) {
    super(`${decision.by}: ${decision.reason ?? decision.verdict}`);
    this.name = "NotAllowed";
    this.decision = decision;
    this.verdict = decision.verdict;
    this.reason = decision.reason;
    this.by = decision.by;
  }
}

/** The five calls. `decision` is the last one, null where there was none; `problem` says why, else null. */
export class Rolebox {
  #runtimeDir;
  #given;
  #place = null;
  #wrong = null;
  #started = null;

  /**
   * `session`, `agent` and `role` hold for all calls; `role` is the name of a role's folder, or the one in its
   * file. `timeout`: seconds for each ask. `runtimeDir`: the bus's directory, found as by every client.
   */
  constructor({ session, agent = "agent", role, timeout = SECONDS, runtimeDir, address, token }) {
    this.session = session;
    this.agent = agent;
    this.role = role;
    this.timeout = timeout;
    this.decision = null;
    this.problem = null;
    this.#runtimeDir = runtimeDir;
    this.#given = { address, token };
  }

  /** The user has sent `text`: onChatMessage. */
  chatMessage(text, core) {
    return this.#phases("user_prompt", {}, "prompt", text, core);
  }

  /** A tool is about to run: onToolBefore. The arguments to run it with. */
  toolBefore(tool, args, core) {
    return this.#phases("tool_call_start", { tool }, "arguments", args, core);
  }

  /** A tool has run: onToolAfter. Its output. */
  toolAfter(tool, args, output, core) {
    return this.#phases("tool_call", { tool, arguments: args, success: true }, "output", output, core);
  }

  /** A system prompt is built: onSystemTransform. Its parts, with what hooks have injected. */
  systemTransform(system, core) {
    return this.#phases("system_transform", {}, "system", system, core);
  }

  /** Anything else has happened, such as session.idle: onEvent, of both phases. */
  async event(type, properties) {
    const event = TYPES[type];
    const payload = event === undefined ? { type } : event === "session_start" ? this.#who() : {};
    await this.#phases(event ?? type.replaceAll(/[.-]/g, "_"), payload, "properties", properties);
  }

  async #phases(event, payload, name, value, core) {
    // Asked and not only published, so that the next ask finds the session known; again, until it was heard.
    this.#started ??= this.#ask("session_start", { source: "startup", ...this.#who() });
    if ((await this.#started) === null) this.#started = null;
    if (core === undefined) {
      return left(await this.#ask(event, { ...payload, [name]: value }), name, value);
    }
    const before = await this.#ask(event, { ...payload, [name]: value, phase: "before" });
    const given = left(before, name, value);
    const own = (await core(given)) ?? given;
    return left(await this.#ask(event, { ...payload, [name]: own, phase: "after" }), name, own);
  }

  #who() {
    return this.role === undefined ? { agent: this.agent } : { agent: this.agent, role: this.role };
  }

  /** The decision, or null; it never throws. */
  async #ask(event, payload) {
    this.decision = null;
    try {
      const answer = await this.#post(JSON.stringify({
        topic: TOPIC + event,
        payload,
        session_id: this.session,
        timeout_s: this.timeout,
        ...inherited(process.env),
      }));
      const said = await answer.json();
      if (!answer.ok) throw new Error(said.detail ?? `the bus answers ${answer.status}`);
      const missing = said.heard.filter((each) => each.silence !== null);
      this.problem = missing.map((each) => `${each.decider}: ${each.silence}`).join(", ") || null;
      this.decision = said;
    } catch (error) {
      this.problem = error.cause?.message ?? error.message ?? String(error);
    }
    return this.decision;
  }

  /**
   * The answer from where the API is served. Where it is served no more, or the token is no more the right one,
   * both are looked up anew. What is known to be wrong is not sent again.
   */
  async #post(body) {
    if (this.#place !== null) {
      try {
        return await this.#send(this.#place, body);
      } catch (error) {
        if (!(error instanceof Refused) && error.cause?.code !== "ECONNREFUSED") throw error;
        this.#place = null;
      }
    }
    const place = found(this.#given, this.#runtimeDir ?? runtimeDirectory(process.env));
    if (place.address === this.#wrong?.address && place.token === this.#wrong.token) throw new Refused();
    const answer = await this.#send(place, body);
    this.#place = place;
    return answer;
  }

  async #send(place, body) {
    const headers = { authorization: `Bearer ${place.token}`, "content-type": "application/json" };
    const signal = AbortSignal.timeout((this.timeout + GRACE_SECONDS) * 1000);
    const answer = await fetch(`${place.address}/api/ask`, { method: "POST", headers, body, signal });
    if (answer.status !== 401) return answer;
    this.#wrong = place;
    throw new Refused();
  }
}

/** The API does not take our token. */
class Refused extends Error {
  constructor() {
    super("the token is wrong");
  }
}

/** `value` as the hooks left it. */
function left(decision, name, value) {
  if (decision === null) return value;
  if (!decision.allowed) throw new NotAllowed(decision);
  if (name === "output") return decision.output === null ? value : decision.output.value;
  const updated = decision.updated_input;
  if (updated === null) return value;
  return name === "arguments" ? updated : name in updated ? updated[name] : value;
}

/** Where the API is served and what lets us in. Throws without a bus. */
function found({ address, token }, directory) {
  const read = (name) => {
    try {
      return readFileSync(join(directory, name), "utf8").trim();
    } catch {
      const hint = "start one with 'prxbus up', without --no-http";
      throw new Error(`no bus with an HTTP API in ${directory} (${name}); ${hint}`);
    }
  };
  return {
    address: address ?? read("http-address"),
    token: token ?? (process.env.PRXBUS_API_TOKEN || read("http-token")),
  };
}

/** The bus's directory, by the rules of every client. */
function runtimeDirectory(environment) {
  if (environment.PRXBUS_RUNTIME_DIR) return resolve(environment.PRXBUS_RUNTIME_DIR);
  const session = environment.XDG_RUNTIME_DIR ?? "";
  if (session.startsWith("/")) return join(session, "prxbus");
  return resolve(environment.TMPDIR || "/tmp", `prxbus-${process.geteuid?.() ?? userInfo().uid}`);
}

/** How deep we are, where a hook has started this agent: loops end. */
function inherited(environment) {
  const text = environment.PRXBUS_DEPTH ?? "0";
  const depth = /^[0-9]{1,9}$/.test(text) ? Math.min(Number(text), 255) : DEEPEST;
  const cause = environment.PRXBUS_CAUSE ?? "";
  return /^[!-~]{1,320}$/.test(cause) ? { depth, caused_by: cause } : { depth };
}
