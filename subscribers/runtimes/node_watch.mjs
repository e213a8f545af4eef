// Looking at what is under way: which calls are late, which threads do not turn, and who holds them up.
//
// Decides when it is time to look and what a look means. What follows is node_host.mjs's to do.

const LOOK_MS = 25; // between two looks while something is under way
const IDLE_MS = 1_000; // and while nothing is
const BLOCK_MS = 300;
const BLOCK_LOADING_MS = 700;
const UNKNOWN_MS = 15_000; // that a thread may stand still while no code of a hook runs in it
const GROWTH_MB = 64; // beyond the limit, of a thread that does not turn

export class Watch {
  #state;
  #on;
  #timer = null;
  #isIdle = true;
  #last = 0;

  /** `state` has `calls`, `loads`, `lanes`, `byIndex` and `limits`; `on` has `overdue(call)`,
   *  `heldUp(lane, hook)`, `cameBack(lane)`, `lost(lane, hook, reason)`, and `haunted(lane)` where the code of
   *  a hook runs on that is gone. */
  constructor(state, on) {
    this.#state = state;
    this.#on = on;
  }

  /** Something is under way. */
  look() {
    if (!this.#isIdle) return;
    clearTimeout(this.#timer);
    this.#isIdle = false;
    this.#last = performance.now();
    this.#timer = setTimeout(() => this.#looked(), LOOK_MS);
  }

  #looked() {
    const { calls, loads, lanes } = this.#state;
    const now = performance.now();
    const passed = Math.min(now - this.#last, 2 * LOOK_MS); // when this thread starves, others may starve as well
    this.#last = now;
    for (const call of [...calls.values()]) if (now >= call.until) this.#on.overdue(call);
    const seen = [...lanes].filter((lane) => !lane.dead && lane.online);
    for (const lane of seen) this.#lookAt(lane, passed);
    this.#isIdle = !calls.size && !loads.size && seen.every((lane) => lane.dead || (lane.turns && !lane.retired));
    this.#timer = setTimeout(() => this.#looked(), this.#isIdle ? IDLE_MS : LOOK_MS);
    if (this.#isIdle) this.#timer.unref();
  }

  #lookAt(lane, passed) {
    lane.look(passed);
    if (lane.blocked) this.#blocked(lane);
    else if (lane.retired) this.#on.cameBack(lane);
    else lane.grown = 0;
    if (!lane.dead && (this.#isIdle || lane.calls.size || lane.loads.size || lane.running)) lane.ask();
  }

  #blocked(lane) {
    const { byIndex, limits } = this.#state;
    const { index, ms } = lane.blocked;
    const hook = index ? byIndex.get(index) : onlyCalled(lane);
    if (index && !hook) return ms < BLOCK_MS ? undefined : this.#on.haunted(lane);
    if (index && this.#grows(lane)) {
      return this.#on.lost(lane, hook, `it used more than ${limits.memoryMb} MB of memory`);
    }
    const begun = [...lane.calls.values()].filter((call) => call.hook === hook && lane.hasBegun(call));
    const late = begun.filter((call) => call.answered).at(-1);
    if (begun.every((call) => call.answered)) {
      if (late && ms >= BLOCK_MS) {
        const time = `longer than its time of ${late.ms / 1_000} s`;
        return this.#on.lost(lane, hook, `it held up its thread in ${late.handler} for ${time}`);
      }
      if (ms >= (hook ? limits.loadMs : UNKNOWN_MS)) {
        return this.#on.lost(lane, hook ?? null, `it held up its thread for ${(ms / 1_000).toFixed(1)} s`);
      }
    }
    const othersWait = [...lane.calls.values()].some((call) => call.hook !== hook);
    const patience = lane.loads.size && !othersWait ? BLOCK_LOADING_MS : BLOCK_MS;
    if (hook && !lane.retired && ms >= patience) this.#on.heldUp(lane, hook);
  }

  /** Whether the process has grown by more than a thread may have, while this one alone did not turn. */
  #grows(lane) {
    const { lanes, limits } = this.#state;
    const megabytes = process.memoryUsage.rss() / 1_048_576;
    lane.grown ||= megabytes;
    const isAlone = [...lanes].every((other) => other === lane || !other.blocked?.index);
    return isAlone && megabytes - lane.grown > limits.memoryMb + GROWTH_MB;
  }
}

/** The hook whose call alone has begun in a thread. */
function onlyCalled(lane) {
  const called = new Set([...lane.calls.values()].filter((call) => lane.hasBegun(call)).map((call) => call.hook));
  return called.size === 1 ? [...called][0] : undefined;
}
