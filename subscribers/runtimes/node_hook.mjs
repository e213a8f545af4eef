// One hook in its thread: the instance of its module, its handlers, and what a call of one comes to.
//
// Decides which functions of a module are handlers, what is passed to them, and what of their work is an edit.
// Refuses to know threads, deadlines and the channel: who calls gets the text of a `done` frame.
//
// **Handlers** are looked for on the default export first (CommonJS: `module.exports.default`, then
// `module.exports`), then among the named exports; the first that has one of a name wins, so that both may be
// used side by side. The default export may be an object, an instance, or a class that is made without
// arguments; a handler's `this` is the object that has it.
//
// **Edits.** `onToolBefore` leaves `args`, `onSystemTransform` leaves `system`: a returned object with such a
// member wins; then what stands in the input, edited in place or put there anew; then a returned list. (A list
// that is returned beside an edit in place is what `splice` gives back, not a replacement.)

import { isDeepStrictEqual, inspect } from 'node:util';

import { rewritten } from './node_json.mjs';

export const HANDLERS = [
  'onChatMessage', 'onToolBefore', 'onToolAfter', 'onSystemTransform', 'onEvent', 'onLoad', 'onDispose',
];
const EDITED = { onToolBefore: 'args', onSystemTransform: 'system' };

/** Lines of a trace that are Node's or the host's. */
const NOT_THEIRS = /^ +at .*(?:\(node:|at node:|subscribers\/runtimes\/node_\w+\.mjs)/;

const ERROR_CHARACTERS = 2_000;
const DETAIL_CHARACTERS = 16_000;
const TEXT_CHARACTERS = 65_536;
const TEXTS = 1_000;

export class Hook {
  /** `told` is the hook as `load` names it, `tell` sends frames, `log` is its bounded logger, and `rate`
   *  says whether it may inject one more text outside of a call. */
  constructor(told, index, tell, log, rate) {
    this.id = told.id;
    this.name = told.name;
    this.index = index;
    this.under = new Set(); // calls that have not ended
    this.overdue = 0; // of these, such as nobody waits for any more
    this.external = 0; // bytes outside of the heap that came while it ran
    this.timers = new Set();
    this.#tell = tell;
    this.#config = told.config;
    this.log = log;
    this.#rate = rate;
  }

  #tell;
  #config;
  #rate;
  #owners = new Map();

  /** Take the handlers of a module's exports. Why there are none, or what is odd about them, or null. */
  take(exported) {
    const odd = [];
    for (const value of exported) {
      const owner = instanceOf(value);
      if (owner === null) continue;
      for (const name of HANDLERS) {
        if (this.#owners.has(name) || owner[name] === undefined) continue;
        if (typeof owner[name] === 'function') this.#owners.set(name, owner);
        else odd.push(`${name} is not a function`);
      }
    }
    if (odd.length) return odd.join('; ');
    return this.#owners.size ? null : `it exports none of the handlers (${HANDLERS.join(', ')})`;
  }

  get handlers() {
    return HANDLERS.filter((name) => this.#owners.has(name));
  }

  /** Run `onLoad` or `onDispose`, where there is one. */
  async lifecycle(handler) {
    const owner = this.#owners.get(handler);
    if (owner) await owner[handler](this.#context({ texts: null, session: null, agent: null }));
  }

  /** Begin a call, of which `text` is the frame. `done` gets its number and the text of what came of it, at once
   *  where the handler is not asynchronous. */
  call(message, text, done) {
    const { n, handler, input } = message;
    const owner = this.#owners.get(handler);
    if (!owner) {
      done(n, doneText(n, 'absent', null, { error: `${this.name} has no ${handler}` }));
      return;
    }
    const call = { n, session: message.session ?? null, agent: message.agent ?? null, texts: [] };
    const member = EDITED[handler];
    const given = member && { text: JSON.stringify(input[member]), frame: text };
    this.under.add(call);
    const end = (failed, value) => {
      this.under.delete(call);
      if (call.texts === null) this.overdue--;
      let answer;
      try {
        answer = failed ? failure(n, call.texts, value) : success(n, call.texts, input, member, given, value);
      } catch (error) {
        answer = failure(n, call.texts, error);
      }
      call.texts = null;
      done(n, answer);
    };
    let result;
    try {
      result = owner[handler](this.#context(call), input);
      if (typeof result?.then === 'function') {
        Promise.resolve(result).then((value) => end(false, value), (error) => end(true, error));
        return;
      }
    } catch (error) {
      end(true, error);
      return;
    }
    end(false, result);
  }

  /** A call's time is over: what it injected until now and injects from now on goes its own way. */
  late(n) {
    for (const call of this.under) {
      if (call.n !== n || call.texts === null) continue;
      for (const text of call.texts) this.#inject(call.session, text);
      call.texts = null;
      this.overdue++;
    }
  }

  #context(call) {
    return {
      hookName: this.name,
      config: this.#config,
      sessionID: call.session ?? undefined,
      agent: call.agent ?? undefined,
      log: this.log,
      inject: (text) => {
        const short = String(text).slice(0, TEXT_CHARACTERS);
        if (call.texts === null) this.#inject(call.session, short);
        else if (call.texts.length < TEXTS) call.texts.push(short);
        else this.log.warn(`more than ${TEXTS} texts of one call: this one is dropped`);
      },
    };
  }

  #inject(session, text) {
    if (this.#rate.allows()) this.#tell(JSON.stringify({ is: 'inject', hook: this.id, session, text }));
  }
}

/** What was thrown, in a line. */
export function inWords(thrown) {
  try {
    const isError = thrown instanceof Error;
    const text = isError ? `${thrown.name}: ${thrown.message}` : `threw ${inspect(thrown, { depth: 1 })}`;
    return text.slice(0, ERROR_CHARACTERS).replace(/\s*\n\s*/g, ' ');
  } catch {
    return 'threw something that cannot be shown';
  }
}

/** Its trace, without what is ours or Node's, or null. */
export function traceOf(thrown) {
  try {
    if (!(thrown instanceof Error) || typeof thrown.stack !== 'string') return null;
    const lines = thrown.stack.slice(0, 4 * DETAIL_CHARACTERS).split('\n');
    const theirs = lines.filter((line) => !NOT_THEIRS.test(line));
    return theirs.join('\n').slice(0, DETAIL_CHARACTERS);
  } catch {
    return null;
  }
}

function instanceOf(value) {
  if (typeof value === 'object') return value;
  if (typeof value !== 'function') return null;
  const prototype = value.prototype;
  const isClass = prototype && HANDLERS.some((name) => typeof prototype[name] === 'function');
  return isClass ? new value() : value;
}

function success(n, texts, input, member, given, value) {
  if (!member) return doneText(n, null, texts, {});
  const left = leftBehind(member, given, input, value);
  const text = JSON.stringify(left);
  if (text === given.text) return doneText(n, null, texts, {});
  if (!fits(member, left, text)) {
    const wanted = member === 'args' ? 'an object' : 'a list of texts';
    const error = `it left ${member} that is not ${wanted}; the edit is dropped`;
    return doneText(n, 'failed', texts, { error });
  }
  if (given.text === undefined) return doneText(n, null, texts, {}, text);
  const before = JSON.parse(given.text);
  if (isDeepStrictEqual(before, JSON.parse(text))) return doneText(n, null, texts, {});
  return doneText(n, null, texts, {}, rewritten(given.frame, member, before, left));
}

function leftBehind(member, given, input, value) {
  if (isPlain(value) && value[member] !== undefined) return value[member];
  if (member === 'system' && Array.isArray(value) && JSON.stringify(input.system) === given.text) return value;
  return input[member];
}

function fits(member, value, text) {
  if (text === undefined) return false;
  if (member === 'args') return isPlain(value);
  return Array.isArray(value) && value.every((part) => typeof part === 'string');
}

function isPlain(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function failure(n, texts, thrown) {
  return doneText(n, 'failed', texts, { error: inWords(thrown), detail: traceOf(thrown) });
}

/** The frame, which begins with the number of the call, so that it can be read off it. */
function doneText(n, status, texts, rest, edit = null) {
  let text = `{"is":"done","n":${n}`;
  if (status) text += `,"status":"${status}"`;
  if (edit !== null) text += `,"edit":${edit}`;
  if (texts?.length) text += `,"inject":${JSON.stringify(texts)}`;
  if (rest.error) text += `,"error":${JSON.stringify(rest.error)}`;
  if (rest.detail) text += `,"detail":${JSON.stringify(rest.detail)}`;
  return `${text}}`;
}
