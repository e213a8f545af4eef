// The threads of the host: how many there are, and which one a hook is given to.
//
// Decides that hooks are spread over a few threads, that one waits to take the place of another, and that hooks
// which hold up others have threads of their own, as long as there are not too many. Why a hook moves is
// node_host.mjs's to decide.

import { Lane } from './node_lane.mjs';

const SLOW_LANES = 8;
const SPARE_MS = 300; // after which a spare one that was taken is replaced: whoever took it comes first

export class Threads {
  lanes = new Set();
  #slow = new Set(); // of hooks that hold up others
  #spare = null;
  #limits;
  #most;
  #on;

  /** At most `most` threads for hooks that hold up nobody; `on` hears of each what node_lane.mjs says. */
  constructor(limits, most, on) {
    this.#limits = limits;
    this.#most = most;
    this.#on = on;
  }

  /** Start threads for so many hooks, all at once. */
  prepare(hooks) {
    for (let more = Math.min(hooks, this.#most) - this.#open().length; more > 0; more--) this.#start();
  }

  /** Where a hook that is new is loaded. */
  emptiest() {
    const open = this.#open();
    return open.length < this.#most ? this.fresh() : fewest(open);
  }

  /** One that has held nothing: the spare one, which has started already, if there is one. */
  fresh() {
    if (!this.#spare) return this.#start();
    const lane = this.#spare;
    this.#spare = null;
    setTimeout(() => this.keepSpare(), SPARE_MS).unref();
    return lane;
  }

  keepSpare() {
    if (!this.#spare) this.#spare = this.#start();
  }

  /** One for a hook that holds up others, which is not `except`. */
  slowOne(except = null) {
    const open = [...this.#slow].filter((lane) => lane !== except && !lane.retired && !lane.dead);
    if (open.length >= SLOW_LANES) return fewest(open);
    const lane = this.fresh();
    this.#slow.add(lane);
    return lane;
  }

  inPlaceOf(lane) {
    return this.#slow.has(lane) ? this.slowOne(lane) : this.fresh();
  }

  /** Whether the hooks of a thread may be given another one, because one of them holds up the others. */
  mayPart(lane) {
    return lane.hooks.size > 1 && (!this.#slow.has(lane) || this.#slow.size < SLOW_LANES);
  }

  isSpare(lane) {
    return lane === this.#spare;
  }

  ended(lane) {
    this.lanes.delete(lane);
    this.#slow.delete(lane);
    if (this.#spare === lane) this.#spare = null;
  }

  #start() {
    const lane = new Lane(this.#limits, this.#on);
    this.lanes.add(lane);
    return lane;
  }

  #open() {
    return [...this.lanes].filter(
      (lane) => !lane.retired && !lane.dead && !this.#slow.has(lane) && !this.isSpare(lane),
    );
  }
}

function fewest(lanes) {
  return lanes.reduce((one, other) => (other.hooks.size < one.hooks.size ? other : one));
}
