// The host's end of the channel to its parent: frames of JSON on an inherited descriptor.
//
// Decides how frames are put together and taken apart, and what is left out when the parent reads too slowly.
// What the frames mean is described in module_channel.py.

import { Socket } from 'node:net';

export const FRAME_BYTES = 67_108_864;
const BACKLOG_BYTES = 33_554_432;
const LENGTH = 4;
const CALL = Buffer.from('{"do":"call"');
const INPUT = Buffer.from(',"input":');

export class Channel {
  #socket;
  #onMessage;
  #pieces = [];
  #waiting = 0;
  #wanted = LENGTH;
  #left = 0;

  /** `onMessage(message, body)` gets a call without its input, and the bytes of it all; `onEnd` is called once. */
  constructor(descriptor, onMessage, onEnd) {
    this.#onMessage = onMessage;
    this.#socket = new Socket({ fd: descriptor, readable: true, writable: true });
    this.#socket.on('data', (data) => this.#feed(data));
    this.#socket.on('error', () => this.#socket.destroy());
    this.#socket.on('close', onEnd);
    this.#socket.on('end', onEnd);
  }

  send(text) {
    const body = Buffer.byteLength(text);
    const frame = Buffer.allocUnsafe(LENGTH + body);
    frame.writeUInt32BE(body);
    frame.write(text, LENGTH);
    this.#socket.write(frame);
  }

  say(message) {
    this.send(JSON.stringify(message));
  }

  /** Send what may be left out, unless too much waits to be read; how much was is said in the next one. */
  sendIfRead(text) {
    if (this.#socket.writableLength > BACKLOG_BYTES) {
      this.#left++;
      return;
    }
    if (this.#left) {
      process.stderr.write(`node host: ${this.#left} records were left out: they are not being read\n`);
      this.#left = 0;
    }
    this.send(text);
  }

  /** Send everything, then `then`. */
  finish(then) {
    this.#socket.end(then);
  }

  #feed(data) {
    this.#pieces.push(data);
    this.#waiting += data.length;
    while (this.#waiting >= this.#wanted) {
      let whole = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
      while (whole.length >= LENGTH) {
        const size = whole.readUInt32BE();
        this.#wanted = LENGTH + size;
        if (size > FRAME_BYTES) {
          this.#socket.destroy();
          return;
        }
        if (whole.length < this.#wanted) break;
        this.#take(whole.subarray(LENGTH, this.#wanted));
        whole = whole.subarray(this.#wanted);
        this.#wanted = LENGTH;
      }
      this.#pieces = whole.length ? [whole] : [];
      this.#waiting = whole.length;
    }
  }

  /** The input of a call is its last member and not for this thread, which must not spend its time on it. */
  #take(body) {
    const isCall = body.subarray(0, CALL.length).equals(CALL);
    const at = isCall ? body.indexOf(INPUT) : -1;
    const text = at < 0 ? body.toString() : `${body.toString('utf8', 0, at)}}`;
    this.#onMessage(JSON.parse(text), body);
  }
}
