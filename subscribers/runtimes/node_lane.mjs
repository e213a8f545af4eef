// A thread that holds hooks, as the main thread sees it.
//
// Decides how a thread is started and limited, what it has been given and has begun, and whether it turns. What
// follows when it does not is node_host.mjs's to decide.

import { Worker } from 'node:worker_threads';

import { CELL, CELLS } from './node_cells.mjs';

const SMALL_BYTES = 32_768;
const GLANCES = 10_000;
const YOUNG_MB = 32;
const CODE_MB = 16; // Node 24 would reserve 512, which counts as data; node_program.py knows this number

export class Lane {
  hooks = new Set();
  calls = new Map(); // given to it and not ended, by number
  loads = new Map(); // by token
  instances = 0; // that it has ever held
  retired = false; // gets no further calls; what has begun may end
  dead = false;
  online = false;
  grown = 0; // MB of the process when it ceased to turn
  blocked = null; // {index, ms}: it takes up nothing and does not answer; this hook's code ran last

  #worker;
  #cells = new Int32Array(new SharedArrayBuffer(CELLS * 4));
  #given = 0;
  #asked = 0;
  #steps = 0;

  /** `on` has `message(lane, m)`, `exit(lane, code, error)`. */
  constructor({ memoryMb, loadMs }, on) {
    let failed = null;
    this.#worker = new Worker(new URL('./node_worker.mjs', import.meta.url), {
      workerData: { cells: this.#cells, loadMs, memoryBytes: memoryMb * 1_048_576 },
      resourceLimits: {
        maxOldGenerationSizeMb: memoryMb,
        maxYoungGenerationSizeMb: YOUNG_MB,
        codeRangeSizeMb: CODE_MB,
      },
    });
    this.#worker.on('message', (message) => on.message(this, message));
    this.#worker.on('error', (error) => (failed = error));
    this.#worker.on('exit', (code) => on.exit(this, code, failed));
  }

  tell(message) {
    this.#worker.postMessage(message);
  }

  give(call) {
    call.lane = this;
    call.heapBefore = this.heapMb;
    call.place = this.#given = (this.#given + 1) | 0;
    this.calls.set(call.n, call);
    if (call.body.length <= SMALL_BYTES) {
      this.#worker.postMessage(call.body.toString());
    } else {
      const copy = new Uint8Array(call.body);
      this.#worker.postMessage(copy, [copy.buffer]);
    }
  }

  /** Have it begin nothing any more. It looks after it has counted a call, so that afterwards nothing is begun. */
  retire() {
    this.retired = true;
    Atomics.store(this.#cells, CELL.RETIRED, 1);
  }

  hasBegun(call) {
    return ((Atomics.load(this.#cells, CELL.BEGUN) - call.place) | 0) >= 0;
  }

  /** The number of the hook whose code runs now, or 0. */
  get running() {
    return Atomics.load(this.#cells, CELL.RUNNING);
  }

  /** As `running`, of a thread that does not turn: between two of its promises it is nobody's for a moment. */
  get holder() {
    for (let look = 0; look < GLANCES; look++) {
      const index = this.running;
      if (index) return index;
    }
    return 0;
  }

  get heapMb() {
    return Atomics.load(this.#cells, CELL.HEAP_KIB) / 1_024;
  }

  get turns() {
    return Atomics.load(this.#cells, CELL.ANSWERED) === this.#asked;
  }

  /** Ask it to answer, if it is not asked already. */
  ask() {
    if (!this.turns) return;
    this.#asked = (this.#asked + 1) | 0;
    this.#worker.postMessage(this.#asked);
  }

  /** Look whether it turns: how long it has not been seen to, and who holds it up. `passed` ms have been seen. */
  look(passed) {
    const steps = Atomics.load(this.#cells, CELL.STEPS);
    if (!this.online || this.turns || steps !== this.#steps) this.blocked = null;
    else this.blocked = { index: this.holder || this.blocked?.index || 0, ms: (this.blocked?.ms ?? 0) + passed };
    this.#steps = steps;
  }

  /** End it. Whether it is over says `exit`; code that waits in the system cannot be ended. */
  end() {
    this.dead = true;
    void this.#worker.terminate();
  }
}
