// What the hooks of a thread find around them: console, process, timers; and whose code runs now.
//
// Decides whose doing something is (the hook in force is carried by AsyncLocalStorage through promises, timers
// and callbacks, and its number is written into shared memory while its code runs, where it can be read when
// the thread does not answer any more), what a hook may not do to the process, and how much it may print and
// log. Refuses to know modules, handlers and calls.
//
// All hooks of a thread share what stands here: whoever sets something of it anew gets an error at its own line,
// and the others go on as before.

import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { Console } from 'node:console';
import { syncBuiltinESMExports } from 'node:module';
import { Writable } from 'node:stream';
import v8 from 'node:v8';

import { CELL } from './node_cells.mjs';
import { inWords, traceOf } from './node_hook.mjs';
import { protect, protectLanguage } from './node_language.mjs';

const NOTE_MS = 1;
const PER_SECOND = 50;
const MESSAGE_CHARACTERS = 8_192;
const FIELDS_CHARACTERS = 16_384;
const PRINTING = [
  'log', 'info', 'debug', 'warn', 'error', 'trace', 'dir', 'dirxml', 'table', 'assert', 'timeEnd', 'timeLog', 'count',
];
const LEVELS = ['debug', 'info', 'warn', 'error'];

const { setTimeout: startTimer, setInterval: startInterval, setImmediate: startImmediate } = globalThis;
const { clearTimeout: stopTimer, clearImmediate: stopImmediate } = globalThis;

const running = new AsyncLocalStorage();
let cells;
let tell;
let limit;
let overLimit;
let outside = 0;
let last; // the hook whose code ran last
let noted = 0;

/** Put everything in place. `shared` are the cells; `send` sends the text of a frame, or an object to the host;
 *  `tooMuch` is called soon when more than `mostBytes` are held outside of the heap. */
export function surround(shared, mostBytes, send, tooMuch) {
  cells = shared;
  limit = mostBytes;
  tell = send;
  overLimit = tooMuch;
  createHook({ before: () => mark(hookNow()), after: nobodyRuns }).enable();
  keepTimers();
  tellCause();
  guardProcess();
  printForHooks();
  lockGlobals();
  syncBuiltinESMExports(); // also for who imports a name of node:process
}

/** Run `work` as `hook`: what it starts is the hook's as well. `call` has the `depth` and `cause` of what is
 *  published meanwhile; null outside of a call. */
export function enter(hook, work, call = null) {
  mark(hook);
  try {
    return running.run({ hook, told: call === null ? null : environmentOf(call) }, work);
  } finally {
    cells[CELL.RUNNING] = 0;
    note(hook);
  }
}

function hookNow() {
  return running.getStore()?.hook;
}

/** Stop the timers of a hook that is gone. */
export function stopTimersOf(hook) {
  for (const timer of hook.timers) {
    stopTimer(timer);
    stopImmediate(timer);
  }
  hook.timers.clear();
}

/** Note how much memory this thread holds, and whose it is as far as that is known. */
export function account(hook) {
  const { external_memory: external, used_heap_size: heap } = v8.getHeapStatistics();
  if (hook) hook.external = Math.max(0, hook.external + external - outside);
  outside = external;
  cells[CELL.HEAP_KIB] = heap / 1_024;
  return external;
}

/** The logger of a hook: at most so many records a second; then one that says how many were left out. */
export function loggerOf(hookId) {
  const rate = new Rate((left) => send('warn', `${left} more records of this hook were left out`, {}));
  const send = (level, message, fields) => {
    const head = JSON.stringify({ is: 'log', hook: hookId, level, message });
    tell(`${head.slice(0, -1)},"fields":${written(fields)}}`);
  };
  const logger = {};
  for (const level of LEVELS) {
    logger[level] = (message, fields) => {
      if (rate.allows()) send(level, inText(message).slice(0, MESSAGE_CHARACTERS), fields);
    };
  }
  return logger;
}

/** How often a hook may inject outside of its calls. */
export function injectRateOf(log) {
  return new Rate((left) => log.warn(`${left} texts that were injected outside of a call were dropped`));
}

class Rate {
  #second = 0;
  #count = 0;
  #left = 0;
  #report;
  #waits = false;

  constructor(report) {
    this.#report = report;
  }

  allows() {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#count = 0;
    }
    if (++this.#count <= PER_SECOND) return true;
    this.#left++;
    if (!this.#waits) {
      this.#waits = true;
      startTimer(() => {
        const left = this.#left;
        this.#left = 0;
        this.#waits = false;
        this.#report(left);
      }, 1_000).unref();
    }
    return false;
  }
}

// ---- whose code runs, and whose memory it is

/** From now on it is `hook`'s, or nobody's. What came before it was another one's. */
function mark(hook) {
  cells[CELL.RUNNING] = hook === undefined ? 0 : hook.index;
  if (hook === undefined || hook === last) return;
  if (last !== undefined) note(last);
  last = hook;
}

function nobodyRuns() {
  if (cells[CELL.RUNNING] === 0) return;
  cells[CELL.RUNNING] = 0;
  if (performance.now() - noted > NOTE_MS) note(last);
}

function note(hook) {
  noted = performance.now();
  if (account(hook) > limit) startImmediate(overLimit);
}

// ---- timers end with their hook

function keepTimers() {
  globalThis.setTimeout = kept(startTimer, true);
  globalThis.setImmediate = kept(startImmediate, true);
  globalThis.setInterval = kept(startInterval, false);
}

function kept(start, once) {
  const starting = (callback, ...rest) => {
    const hook = hookNow();
    if (hook === undefined || typeof callback !== 'function') return start(callback, ...rest);
    const timer = start(function (...given) {
      if (once) hook.timers.delete(timer);
      try {
        return Reflect.apply(callback, this, given);
      } finally {
        note(hook);
      }
    }, ...rest);
    hook.timers.add(timer);
    return timer;
  };
  return Object.assign(starting, start); // with what util.promisify looks for
}

// ---- what is published while an event is handled is caused by it, and one level deeper

const DEPTH = 'PRXBUS_DEPTH';
const CAUSE = 'PRXBUS_CAUSE';

function environmentOf({ depth, cause }) {
  return { [DEPTH]: String(depth ?? 0), ...(cause ? { [CAUSE]: cause } : {}) };
}

/** Have `process.env`, and so programs that are started, say what the call that looks has been told. */
function tellCause() {
  const told = (name) => {
    const names = typeof name === 'string' ? running.getStore()?.told : null;
    return names && Object.hasOwn(names, name) ? names[name] : undefined;
  };
  const value = new Proxy(process.env, {
    get: (env, name) => told(name) ?? env[name],
    set: (env, name, value) => {
      env[name] = value;
      return true;
    },
    has: (env, name) => told(name) !== undefined || name in env,
    ownKeys: (env) => [...new Set([...Reflect.ownKeys(env), ...Object.keys(running.getStore()?.told ?? {})])],
    getOwnPropertyDescriptor: (env, name) => {
      const value = told(name);
      if (value === undefined) return Reflect.getOwnPropertyDescriptor(env, name);
      return { value, writable: true, enumerable: true, configurable: true };
    },
  });
  Object.defineProperty(process, 'env', { value, writable: true, enumerable: true, configurable: true });
}

// ---- the process is everybody's

class Ended extends Error {}

function guardProcess() {
  const kill = process.kill.bind(process);
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    const hook = hookNow();
    if (!hook) exit(code); // Node itself, when all is lost here
    tell({ guilty: hook.index, reason: `it called process.exit(${code ?? ''})` });
    throw new Ended(`process.exit(${code ?? ''}) ends this hook, not the process`);
  };
  process.reallyExit = process.exit;
  process.kill = (pid, signal) => {
    if (Math.abs(pid) === process.pid || pid === 0) {
      const hook = hookNow();
      if (signal === 0) return true; // it is there
      const reason = `it sent ${signal ?? 'SIGTERM'} to the process that runs it`;
      if (hook) tell({ guilty: hook.index, reason });
      throw new Ended('the process that runs this hook is shared: it cannot be sent a signal from here');
    }
    return kill(pid, signal);
  };
  process.on('uncaughtException', (thrown) => astray(thrown, 'an exception that nobody caught'));
  process.on('unhandledRejection', (thrown) => astray(thrown, 'a promise was rejected and nobody looked'));
  process.on('warning', (warning) => {
    if (warning.name !== 'ExperimentalWarning') print(`${warning.name}: ${warning.message}`);
  });
}

function astray(thrown, what) {
  if (thrown instanceof Ended) return;
  const hook = hookNow();
  const fields = { detail: traceOf(thrown) ?? undefined };
  if (hook) hook.log.error(`${what}: ${inWords(thrown)}`, fields);
  else print(`${what}: ${inWords(thrown)}\n${fields.detail ?? ''}`);
}

// ---- what is everybody's stays as it is

function lockGlobals() {
  for (const name of ['exit', 'reallyExit', 'kill', 'env']) {
    Object.defineProperty(process, name, { writable: false, configurable: false });
  }
  protect(console, true);
  for (const name of Reflect.ownKeys(globalThis)) {
    const { configurable, get } = Reflect.getOwnPropertyDescriptor(globalThis, name);
    if (!configurable || get) continue; // Node puts a value in the place of a getter when it is first needed
    Object.defineProperty(globalThis, name, { writable: false, configurable: false });
  }
  protectLanguage();
}

// ---- what is printed goes to standard error, under the hook's name

function printForHooks() {
  const rates = new WeakMap();
  const nobody = { name: '-' };
  const allowed = () => {
    const hook = hookNow() ?? nobody;
    const report = (left) => printed(hook, `${left} more lines of this hook were left out`);
    if (!rates.has(hook)) rates.set(hook, new Rate(report));
    return rates.get(hook).allows();
  };
  const sink = new Writable({
    decodeStrings: false,
    write: (chunk, _encoding, done) => {
      print(String(chunk));
      done();
    },
  });
  const ours = new Console({ stdout: sink, stderr: sink });
  for (const name of PRINTING) {
    const show = ours[name];
    ours[name] = (...given) => void (allowed() && show(...given));
  }
  globalThis.console = ours;
  const write = (chunk, encoding, done) => {
    if (allowed()) print(String(chunk));
    const then = typeof encoding === 'function' ? encoding : done;
    if (typeof then === 'function') startImmediate(then);
    return true;
  };
  process.stdout.write = write;
  process.stderr.write = write;
}

function print(text) {
  printed(hookNow(), text);
}

function printed(hook, text) {
  if (text) tell({ print: text.slice(0, MESSAGE_CHARACTERS), name: hook?.name ?? '-' });
}

function inText(value) {
  return typeof value === 'string' ? value : value instanceof Error ? inWords(value) : String(value);
}

function showable(_key, value) {
  if (value instanceof Error) return traceOf(value) ?? String(value);
  return typeof value === 'bigint' ? String(value) : value;
}

function written(fields) {
  if (fields === undefined || fields === null) return '{}';
  try {
    const isWhole = typeof fields === 'object' && !Array.isArray(fields) && !(fields instanceof Error);
    const text = JSON.stringify(isWhole ? fields : { value: fields }, showable);
    return text.length <= FIELDS_CHARACTERS ? text : JSON.stringify({ cut: text.slice(0, FIELDS_CHARACTERS) });
  } catch (error) {
    return JSON.stringify({ unwritable: inWords(error) });
  }
}
