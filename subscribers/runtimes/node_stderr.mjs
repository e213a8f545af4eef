// Standard error of the host: what hooks print, line by line under their names.
//
// Decides that printing never waits: a reader that is too slow misses lines, and is told how many.

import { write } from 'node:fs';

const WAITING_CHARACTERS = 262_144;

export class Stderr {
  #lines = [];
  #waiting = 0;
  #left = 0;
  #busy = false;

  print(name, text) {
    const lines = text.replace(/\n$/, '').split('\n').map((line) => `[${name}] ${line}\n`).join('');
    if (this.#waiting + lines.length > WAITING_CHARACTERS) {
      this.#left++;
      return;
    }
    this.#lines.push(lines);
    this.#waiting += lines.length;
    if (!this.#busy) this.#next();
  }

  #next() {
    this.#busy = this.#lines.length > 0;
    if (!this.#busy) return;
    const note = `[node host] ${this.#left} prints of hooks were left out: nobody reads them\n`;
    if (this.#left) this.#lines.unshift(note);
    this.#left = 0;
    const bytes = Buffer.from(this.#lines.join(''));
    this.#lines = [];
    this.#waiting = 0;
    this.#write(bytes);
  }

  #write(bytes) {
    write(2, bytes, (error, written) => {
      if (error?.code === 'EAGAIN') setTimeout(() => this.#write(bytes), 20);
      else if (!error && written < bytes.length) this.#write(bytes.subarray(written));
      else this.#next();
    });
  }
}
