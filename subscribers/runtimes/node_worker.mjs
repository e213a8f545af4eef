// A thread that holds hooks: loads them, calls their handlers, disposes them.
//
// Decides the order of a hook's life in its thread and how long each step may take while the thread turns.
// Refuses to know what happens when it does not turn: that is for the main thread to see (node_lane.mjs).
//
// From the main thread: a text or bytes (a `call` frame), a number (answer it), or an object `{do, ...}`.
// To it: a text (a frame for the parent), or an object.

import threads from 'node:worker_threads';

import { CELL } from './node_cells.mjs';
import { Hook, inWords, traceOf } from './node_hook.mjs';
import { ModuleGraph, NotCode, placeOf } from './node_loader.mjs';
import { account, enter, injectRateOf, loggerOf, stopTimersOf, surround } from './node_surroundings.mjs';

const { parentPort, workerData } = threads;
const { cells, loadMs, memoryBytes } = workerData;
Object.assign(threads, { parentPort: null, workerData: null }); // ours: no hook speaks for this thread
const { setTimeout: startTimer, setInterval: startInterval, clearTimeout: stopTimer } = globalThis;

const LOOK_MS = 500;
const COLLECT_MS = 100;

const current = new Map(); // hooks, by id
const loaded = new Map(); // hooks that are not disposed, by token
let begun = 0;
let collected = -COLLECT_MS;

const send = (message) => parentPort.postMessage(message);
surround(cells, memoryBytes, send, watchMemory);

parentPort.on('message', (message) => {
  cells[CELL.STEPS]++;
  if (typeof message === 'string') call(message);
  else if (typeof message === 'number') Atomics.store(cells, CELL.ANSWERED, message);
  else if (message instanceof Uint8Array) call(Buffer.from(message.buffer).toString());
  else control[message.do](message);
});

startInterval(watchMemory, LOOK_MS).unref();
send({ online: true });

function call(text) {
  Atomics.store(cells, CELL.BEGUN, (begun = (begun + 1) | 0));
  const message = JSON.parse(text);
  if (Atomics.load(cells, CELL.RETIRED)) {
    send({ skipped: message.n });
    return;
  }
  const hook = current.get(message.hook);
  if (hook) enter(hook, () => hook.call(message, text, done), message);
  else send({ skipped: message.n });
}

function done(n, text) {
  send(text);
}

const control = {
  load: ({ token, index, told }) => void load(token, index, told),
  unload: ({ token, ms }) => void left(token, ms),
  drop: ({ token }) => forget(loaded.get(token), token),
  late: ({ token, n }) => loaded.get(token)?.late(n),
  end: ({ ms }) => void Promise.all([...loaded.keys()].map((token) => left(token, ms))).then(() => send({ ended: true })),
};

async function load(token, index, told) {
  account(undefined);
  if (cells[CELL.HEAP_KIB] * 1_024 > memoryBytes / 2) globalThis.gc(); // modules that are gone are freed late
  const log = loggerOf(told.id);
  const hook = new Hook(told, index, send, log, injectRateOf(log));
  loaded.set(token, hook);
  let problem;
  try {
    const loading = enter(hook, () => new ModuleGraph().load(told.path));
    const exported = await within(loadMs, loading, 'its module was not done');
    problem = enter(hook, () => hook.take(exported));
  } catch (error) {
    forget(hook, token);
    send({ refused: token, ...(await refusal(error)) });
    return;
  }
  let detail = null;
  try {
    await within(loadMs, enter(hook, () => hook.lifecycle('onLoad')), 'onLoad was not done');
  } catch (error) {
    problem = `onLoad threw: ${inWords(error)}`;
    detail = traceOf(error);
  }
  if (!loaded.has(token)) return; // dropped meanwhile
  current.set(told.id, hook);
  send({ loaded: token, handlers: hook.handlers, problem, detail });
}

async function left(token, ms) {
  send({ unloaded: token, ...(await unload(token, ms)) });
}

async function unload(token, ms) {
  const hook = loaded.get(token);
  if (!hook) return {};
  const until = performance.now() + ms;
  if (current.get(hook.id) === hook) current.delete(hook.id);
  loaded.delete(token);
  try {
    while (hook.under.size > hook.overdue && performance.now() < until) {
      await new Promise((turn) => startTimer(turn, 5));
    }
    const disposing = enter(hook, () => hook.lifecycle('onDispose'));
    await within(until - performance.now(), disposing, 'onDispose was not done');
    return { hook: hook.id };
  } catch (error) {
    return { hook: hook.id, problem: `onDispose threw: ${inWords(error)}`, detail: traceOf(error) };
  } finally {
    stopTimersOf(hook);
  }
}

function forget(hook, token) {
  if (!hook) return;
  loaded.delete(token);
  if (current.get(hook.id) === hook) current.delete(hook.id);
  stopTimersOf(hook);
}

function within(ms, work, late) {
  return new Promise((resolve, reject) => {
    const timer = startTimer(() => reject(new Error(`${late} after ${Math.round(ms)} ms`)), Math.max(1, ms));
    work.then(resolve, reject).finally(() => stopTimer(timer));
  });
}

async function refusal(error) {
  if (!(error instanceof NotCode)) {
    const trace = traceOf(error);
    const line = trace && /(\/[^\s:()]+:\d+):\d+/.exec(trace);
    return { error: line ? `${inWords(error)} (${line[1]})` : inWords(error), detail: trace };
  }
  const place = await placeOf(error);
  const words = `${error.cause.name}: ${error.cause.message}`;
  return {
    error: place.line === null ? `${words} (${error.path})` : `${words} (${error.path}:${place.line})`,
    detail: `${place.shown}\n\n${words}`,
  };
}

/** Say so when this thread holds too much outside of its heap, of which no limit of V8 knows. */
function watchMemory() {
  if (account(undefined) <= memoryBytes || performance.now() - collected < COLLECT_MS) return;
  collected = performance.now();
  globalThis.gc();
  const external = account(undefined);
  if (external <= memoryBytes) return;
  const [most] = [...loaded.values()].sort((one, other) => other.external - one.external);
  send({ memory: external, guilty: most && most.external > external / 2 ? most.index : 0 });
}
