// The process that holds the JavaScript hooks: speaks with its parent, gives hooks to threads, sees to it that
// no hook holds up another one.
//
//     node [flags] node_host.mjs --workers 4 --memory-mb 256 --load-ms 5000 --channel 5
//
// Its main thread runs no code of a hook. Hooks are spread over a few threads (node_lane.mjs). When one of them
// does not turn for BLOCK_MS and a hook's code runs in it, its other hooks are loaded into a fresh thread at
// once; that hook keeps the old one until its time is over. If it comes back in time, it goes on in a thread
// of its own; if not, the thread is ended and the hook quarantined. `onLoad` of a hook that moves runs again.
//
// Decides who is to blame for the loss of a thread. The protocol is described in module_channel.py.

import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { Channel, FRAME_BYTES } from './node_channel.mjs';
import { Stderr } from './node_stderr.mjs';
import { Threads } from './node_threads.mjs';
import { Watch } from './node_watch.mjs';

const OVERLAP_MS = 100; // after which the next hook is loaded beside one that is not done
const DISPOSE_MS = 2_000;
const TIMEOUTS = 3; // in a row
const STUCK_LANES = 4; // that were ended and are not over
const STUCK_MS = 2_000;
const CALLS = 10_000;
const ANOTHERS_FAULT = 'its thread was ended because of another hook';
const WORN = 100; // instances that a thread may have held beyond those that it holds
const WORN_FULL = 3; // of them, where its heap is nearly full
const OPEN = 100; // calls of a hook that never ended

const { values: options } = parseArgs({
  options: {
    workers: { type: 'string', default: '4' },
    'memory-mb': { type: 'string', default: '256' },
    'load-ms': { type: 'string', default: '5000' },
    channel: { type: 'string' },
  },
});
const limits = { memoryMb: Number(options['memory-mb']), loadMs: Number(options['load-ms']) };

const hooks = new Map(); // by id
const byIndex = new Map();
const calls = new Map(); // not answered, by number
const toLoad = [];
const loads = new Map(); // under way, by token
const unloads = new Map(); // by token
let lastIndex = 0;
let lastToken = 0;
let loading = null; // the load that the next one waits for
let ending = false;
let replaceSaid = false;

const threads = new Threads(limits, Number(options.workers), { message: heard, exit: exited });
const { lanes } = threads;
const watch = new Watch(
  { calls, loads, lanes, byIndex, limits },
  { overdue, heldUp: isolate, cameBack: release, lost: lose, haunted },
);
const stderr = new Stderr();
const channel = new Channel(Number(options.channel), receive, () => end(500));

try {
  appendFileSync('/proc/self/oom_score_adj', '300'); // rather this one than the bus
} catch {
  // not this system's way
}
process.on('SIGTERM', () => end(500));
process.on('SIGINT', () => undefined);
process.on('SIGHUP', () => undefined);
channel.say({ is: 'ready', version: process.version });

function receive(message, body) {
  switch (message.do) {
    case 'call':
      return begin(message, body);
    case 'load':
      toLoad.push(...message.hooks);
      threads.prepare(toLoad.length + hooks.size);
      return loadNext();
    case 'unload':
      return message.hooks.forEach(unload);
    case 'end':
      return end(message.ms);
  }
}

// ---- hooks: loaded, replaced, unloaded

/** A hook as the host holds it. `told` is what is loaded, null before; `ready`: its instance takes calls. */
function newHook(id) {
  const hook = { id, index: ++lastIndex, told: null, token: 0, lane: null, ready: false, waiting: [] };
  hook.late = hook.open = 0; // calls in a row that were late; late ones that have not ended
  hooks.set(id, hook);
  byIndex.set(hook.index, hook);
  return hook;
}

function loadNext() {
  if (loading || !toLoad.length || ending) return;
  const told = toLoad.shift();
  const hook = hooks.get(told.id) ?? newHook(told.id);
  const lane = hook.lane && !hook.lane.retired && !hook.lane.dead ? hook.lane : threads.emptiest();
  waitFor(load(hook, told, lane, false));
  channel.say({ is: 'loading', hook: hook.id });
}

function waitFor(record) {
  loading = record;
  record.overlap = setTimeout(() => loadedOrSlow(record), OVERLAP_MS);
}

function loadedOrSlow(record) {
  clearTimeout(record.overlap);
  if (loading !== record) return;
  loading = null;
  loadNext();
  if (!loading && hooks.size > 1 && !ending) threads.keepSpare();
}

function load(hook, told, lane, again) {
  const record = { token: ++lastToken, hook, told, lane, again, overlap: undefined };
  loads.set(record.token, record);
  lane.loads.set(record.token, record);
  lane.hooks.add(hook);
  lane.instances++;
  lane.tell({ do: 'load', token: record.token, index: hook.index, told });
  watch.look();
  return record;
}

function settled(record) {
  loads.delete(record.token);
  record.lane.loads.delete(record.token);
  loadedOrSlow(record);
}

function wasLoaded(record, { handlers, problem, detail }) {
  const { hook, lane } = record;
  settled(record);
  if (hook.gone) return dispose(record.token, lane, null);
  const old = { token: hook.token, lane: hook.lane };
  Object.assign(hook, { told: record.told, token: record.token, lane, ready: !lane.retired });
  if (!record.again) {
    hook.late = hook.open = 0;
    channel.say({ is: 'loaded', hook: hook.id, handlers, problem: problem ?? null, detail: detail ?? null });
    if (old.token && !old.lane.dead) dispose(old.token, old.lane, null);
    if (old.lane && old.lane !== lane) old.lane.hooks.delete(hook);
  }
  if (hook.ready) for (const call of hook.waiting.splice(0)) if (!call.answered) give(call);
  if (!loads.size && !lane.retired && isWorn(lane)) renew(lane);
}

function wasRefused(record, { error, detail }) {
  const { hook, lane } = record;
  settled(record);
  if (hook.gone) return;
  if (record.again) return quarantine(hook, `it could not be loaded again: ${error}`);
  channel.say({ is: 'refused', hook: hook.id, error, detail: detail ?? null });
  if (hook.told === null) forget(hook, `its module could not be loaded: ${error}`);
  else if (hook.lane !== lane) lane.hooks.delete(hook);
}

function unload(id) {
  const at = toLoad.findIndex((told) => told.id === id);
  if (at >= 0) toLoad.splice(at, 1);
  const hook = hooks.get(id);
  if (!hook) return sayUnloaded(id);
  const { token, lane } = hook;
  const isThere = token && lane && !lane.dead && hook.ready;
  forget(hook, 'it was unloaded', isThere);
  if (isThere) dispose(token, lane, id);
  else sayUnloaded(id);
}

/** Have an instance disposed; `id` is told to the parent afterwards, if it asked for that. */
function dispose(token, lane, id) {
  const problem = 'onDispose did not end in time';
  const late = setTimeout(wasUnloaded, DISPOSE_MS + 250, token, { problem });
  unloads.set(token, { id, lane, late });
  lane.tell({ do: 'unload', token, ms: DISPOSE_MS });
}

function wasUnloaded(token, { hook, problem, detail }) {
  const record = unloads.get(token);
  unloads.delete(token);
  clearTimeout(record?.late);
  if (record?.id) sayUnloaded(record.id, problem, detail);
  else if (problem && hook) channel.say({ is: 'log', hook, level: 'warn', message: problem, fields: { detail } });
}

function sayUnloaded(id, problem = null, detail = null) {
  channel.say({ is: 'unloaded', hook: id, problem, detail });
}

/** Forget a hook; its calls that have begun may end if `mayEnd`, the others are answered. */
function forget(hook, reason, mayEnd = false) {
  hook.gone = true;
  hook.ready = false;
  if (hooks.get(hook.id) === hook) hooks.delete(hook.id);
  byIndex.delete(hook.index);
  hook.lane?.hooks.delete(hook);
  for (const record of loads.values()) if (record.hook === hook) record.lane.hooks.delete(hook);
  for (const call of calls.values()) {
    if (call.hook !== hook) continue;
    if (!call.lane) answer(call, { is: 'done', status: 'absent', error: reason });
    else if (!mayEnd) answer(call, { is: 'lost', started: call.lane.hasBegun(call), reason });
  }
}

/** Let a hook run no more, without disposing it. Its calls are lost. */
function quarantine(hook, reason) {
  if (hook.gone) return;
  channel.say({ is: 'quarantined', hook: hook.id, reason });
  const { token, lane } = hook;
  forget(hook, reason);
  if (lane && !lane.dead) lane.tell({ do: 'drop', token });
  for (const record of [...loads.values()]) {
    if (record.hook !== hook) continue;
    if (!record.lane.dead) record.lane.tell({ do: 'drop', token: record.token });
    settled(record);
  }
}

// ---- calls

function begin(message, body) {
  const hook = hooks.get(message.hook);
  const { n } = message;
  if (!hook || calls.size >= CALLS) {
    const error = hook ? `${CALLS} calls are under way already` : 'it is not loaded';
    return channel.say({ is: 'done', n, status: hook ? 'failed' : 'absent', error });
  }
  const { handler, session, timeout_ms: ms } = message;
  const until = performance.now() + ms;
  const call = { n, hook, handler, session, ms, until, body, lane: null, place: 0, answered: false };
  calls.set(n, call);
  if (hook.ready) give(call);
  else hook.waiting.push(call);
  watch.look();
}

function give(call) {
  call.token = call.hook.token;
  call.hook.lane.give(call);
}

function answer(call, message) {
  if (call.answered) return;
  call.answered = true;
  calls.delete(call.n);
  channel.say({ ...message, n: call.n });
}

function wasDone(lane, text) {
  const n = Number.parseInt(text.slice('{"is":"done","n":'.length), 10);
  const call = lane.calls.get(n);
  if (!call) return;
  lane.calls.delete(n);
  if (!call.answered) {
    call.answered = true;
    calls.delete(n);
    call.hook.late = 0;
    if (text.length * 3 <= FRAME_BYTES || Buffer.byteLength(text) <= FRAME_BYTES) channel.send(text);
    else channel.say({ is: 'done', n, status: 'failed', error: 'what it returned is too large to be handed over' });
  } else if (!call.hook.gone) {
    call.hook.open = Math.max(0, call.hook.open - 1);
    const session = call.session ?? null;
    for (const late of JSON.parse(text).inject ?? []) {
      channel.say({ is: 'inject', hook: call.hook.id, session, text: late });
    }
  }
}

/** A retired thread has not begun this one, or has no such hook any more. */
function wasSkipped(lane, n) {
  const call = lane.calls.get(n);
  if (call) again(call);
}

/** Have a call that has not begun made where its hook is now. */
function again(call) {
  call.lane?.calls.delete(call.n);
  call.lane = null;
  if (call.answered) return;
  if (call.hook.gone) answer(call, { is: 'done', status: 'absent', error: 'it is not loaded' });
  else if (call.hook.ready && !call.hook.lane.retired) give(call);
  else call.hook.waiting.push(call);
}

function overdue(call) {
  const begun = call.lane?.hasBegun(call) ?? false;
  const time = `${call.ms / 1_000} s`;
  const error = begun ? `it was not done within ${time}` : `it could not begin within ${time}`;
  answer(call, { is: 'done', status: 'timeout', error });
  const { hook, lane } = call;
  call.body = null;
  if (!begun) return;
  lane.tell({ do: 'late', token: call.token, n: call.n });
  if (lane.blocked) return; // that is another matter
  if (++hook.late >= TIMEOUTS) quarantine(hook, `${TIMEOUTS} calls in a row did not end within their time`);
  else if (++hook.open >= OPEN) quarantine(hook, `${OPEN} of its calls have never ended`);
}

// ---- threads

function heard(lane, message) {
  if (typeof message === 'string') {
    if (message.startsWith('{"is":"done"')) wasDone(lane, message);
    else channel.sendIfRead(message);
  } else if (message.print !== undefined) stderr.print(message.name, message.print);
  else if (message.online) lane.online = true;
  else if (message.skipped !== undefined) wasSkipped(lane, message.skipped);
  else if (message.loaded || message.refused) {
    const record = loads.get(message.loaded ?? message.refused);
    if (record) (message.loaded ? wasLoaded : wasRefused)(record, message);
  } else if (message.unloaded) wasUnloaded(message.unloaded, message);
  else if (message.ended) lane.end();
  else if (message.memory !== undefined) fat(lane, message);
  else if (message.guilty) {
    const hook = byIndex.get(message.guilty);
    if (hook) blame(lane, hook, message.reason);
  }
}

function exited(lane, code, error) {
  threads.ended(lane);
  if (lane.dead || ending) return;
  const hook = byIndex.get(lane.running);
  if (error?.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return lose(lane, whoFilled(lane, hook), `it used more than ${limits.memoryMb} MB of memory`);
  }
  if (!lane.online) {
    process.stderr.write(`node host: a thread cannot be started: ${error?.message ?? `exit code ${code}`}\n`);
    process.exit(70);
  }
  lose(lane, hook ?? null, `it ended its thread (${error ? error.message : `exit code ${code}`})`);
}

/** Whose fault a full heap is: not that of the hook that runs, where it was half full before that was called. */
function whoFilled(lane, hook) {
  const before = [...lane.calls.values()].filter((call) => call.hook === hook).map((call) => call.heapBefore);
  const full = before.length ? Math.min(...before) : lane.heapMb;
  return hook && full < limits.memoryMb / 2 ? hook : null;
}

/** A thread is past help: end it, quarantine who is to blame, load its other hooks into a fresh one. */
function lose(lane, guilty, reason) {
  if (ending) return;
  lane.retire();
  lane.end();
  setTimeout(stuck, STUCK_MS, lane).unref();
  const suspects = guilty ? [guilty] : [...lane.hooks];
  const isClear = suspects.length === 1;
  if (isClear) blame(lane, suspects[0], reason);
  const left = [...lane.hooks];
  if (left.length && isClear) move(lane, left, [threads.inPlaceOf(lane)], null);
  else if (left.length) move(lane, left, [threads.slowOne(), threads.slowOne()], reason);
  else settleCalls(lane, isClear ? null : reason);
  const problem = 'its thread ended before onDispose was done';
  for (const [token, record] of unloads) if (record.lane === lane) wasUnloaded(token, { problem });
}

/** A hook that is gone holds up a thread: nobody who is left is to blame. */
function haunted(lane) {
  lane.retire();
  lane.end();
  if (lane.hooks.size) move(lane, [...lane.hooks], [threads.inPlaceOf(lane)], null);
  else settleCalls(lane, null);
}

/** Refuse what did not load, quarantine what did. */
function blame(lane, hook, reason) {
  for (const record of [...lane.loads.values()]) {
    if (record.hook === hook && !record.again) {
      if (!lane.dead) lane.tell({ do: 'drop', token: record.token });
      wasRefused(record, { error: reason });
      return;
    }
  }
  quarantine(hook, reason);
}

/** Load hooks of a thread into others, turn by turn. `reason`: why it is dead, if nobody is known to blame. */
function move(lane, moved, targets, reason) {
  for (const [at, hook] of moved.entries()) {
    const target = targets[at % targets.length];
    lane.hooks.delete(hook);
    const pending = [...lane.loads.values()].filter((record) => record.hook === hook);
    for (const record of pending) {
      lane.loads.delete(record.token);
      loads.delete(record.token);
      clearTimeout(record.overlap);
    }
    if (hook.lane === lane && hook.told) {
      hook.ready = false;
      hook.lane = target;
      load(hook, hook.told, target, true);
    }
    for (const record of pending) {
      if (record.again) continue;
      const renewed = load(hook, record.told, target, false);
      if (loading === record) waitFor(renewed);
    }
  }
  settleCalls(lane, reason);
  if (loading && !loads.has(loading.token)) loadedOrSlow(loading);
}

/** What a thread has not begun is made elsewhere; what it has is lost, if it is dead. */
function settleCalls(lane, reason) {
  for (const call of [...lane.calls.values()]) {
    if (!lane.hasBegun(call)) again(call);
    else if (lane.dead) {
      lane.calls.delete(call.n);
      if (reason === null) answer(call, { is: 'done', status: 'failed', error: ANOTHERS_FAULT });
      else answer(call, { is: 'lost', started: true, reason });
    }
  }
}

/** A hook holds up its thread: the others get another one; it keeps this one until it comes back or is late. */
function isolate(lane, guilty) {
  if (!threads.mayPart(lane)) return;
  lane.retire();
  guilty.ready = false;
  const others = [...lane.hooks].filter((hook) => hook !== guilty);
  move(lane, others, [threads.inPlaceOf(lane)], null);
}

/** It came back: on with it in a thread of its own, when what has begun here is over. */
function release(lane) {
  if ([...lane.calls.values()].some((call) => !call.answered)) return;
  for (const hook of [...lane.hooks]) move(lane, [hook], [threads.slowOne(lane)], null);
  if (!lane.ending) {
    lane.ending = true;
    lane.tell({ do: 'end', ms: DISPOSE_MS });
    setTimeout(() => lane.end(), DISPOSE_MS + 250).unref();
  }
}

/** Whether a thread has held too much that is gone: Node frees modules late, and not all that was theirs. */
function isWorn(lane) {
  const dead = lane.instances - lane.hooks.size;
  return dead > WORN || (dead > WORN_FULL && lane.heapMb > 0.75 * limits.memoryMb);
}

function renew(lane) {
  lane.retire();
  if (lane.hooks.size) move(lane, [...lane.hooks], [threads.inPlaceOf(lane)], null);
}

function stuck(lane) {
  lane.isStuck = lanes.has(lane);
  const count = [...lanes].filter((other) => other.isStuck).length;
  if (count < STUCK_LANES || replaceSaid) return;
  replaceSaid = true;
  channel.say({ is: 'replace', reason: `${count} threads cannot be ended` });
}

/** A thread holds too much outside of its heap. */
function fat(lane, { memory, guilty }) {
  if (lane.dead) return;
  const hook = byIndex.get(guilty);
  const megabytes = Math.round(memory / 1_048_576);
  lose(lane, hook ?? null, `it holds ${megabytes} MB of buffers, more than ${limits.memoryMb} MB`);
}

// ---- the end

function end(ms) {
  if (ending) return;
  ending = true;
  const over = () => channel.finish(() => process.exit(0));
  const until = setTimeout(over, ms);
  setTimeout(() => process.exit(0), ms + 200).unref();
  const waited = [...lanes].filter((lane) => !lane.dead && !lane.blocked && !threads.isSpare(lane));
  for (const lane of waited) if (!lane.ending) lane.tell({ do: 'end', ms: Math.max(50, ms - 100) });
  const check = setInterval(() => {
    if (waited.every((lane) => lane.dead)) {
      clearInterval(check);
      clearTimeout(until);
      over();
    }
  }, 5);
}
