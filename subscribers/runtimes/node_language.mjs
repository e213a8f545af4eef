// What the hooks of a thread share of the language itself: what is there cannot be set anew by any of them.
//
// Decides what is held fast: the functions of JSON, Promise, Array and so on, and their names. Whoever sets one
// anew gets an error at its own line. An object of one's own may still have a member of any name, a class may
// override what it inherits, and what the language does not have may be added, other than to all objects at once,
// and how lists and texts are written as JSON.
// Node's own --frozen-intrinsics would also stop packages that add something, or set Error.stackTraceLimit.

const NAMES = [
  ...['Object', 'Function', 'Array', 'String', 'Number', 'Boolean', 'Symbol', 'BigInt', 'RegExp', 'Date', 'Promise'],
  ...['Map', 'Set', 'WeakMap', 'WeakSet', 'WeakRef', 'ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'Uint8Array'],
  ...['Buffer', 'JSON', 'Math', 'Reflect', 'Atomics', 'Proxy'],
];
const { defineProperty, getOwnPropertyDescriptor, ownKeys } = Reflect;

export function protectLanguage() {
  const typed = Object.getPrototypeOf(Uint8Array);
  for (const owner of [...NAMES.map((name) => globalThis[name]), typed]) {
    protect(owner, false);
    if (typeof owner === 'function' && owner.prototype) protect(owner.prototype, true);
  }
  protect(Error.prototype, true);
  for (const { prototype } of [Array, String, Number, Boolean]) {
    defineProperty(prototype, 'toJSON', overridable(prototype, 'toJSON', { value: undefined, enumerable: false }));
  }
  Object.preventExtensions(Object.prototype);
}

/** Hold fast what an object has. `isInherited`: objects that inherit from it may have their own of the same name. */
export function protect(owner, isInherited) {
  for (const name of ownKeys(owner)) {
    const found = getOwnPropertyDescriptor(owner, name);
    if (!found.configurable || name === 'constructor') continue; // V8 is slow once it has been looked at
    if (!('value' in found)) defineProperty(owner, name, { configurable: false });
    else if (isInherited && typeof name === 'string') defineProperty(owner, name, overridable(owner, name, found));
    else defineProperty(owner, name, { writable: false, configurable: false });
  }
}

function overridable(owner, name, { value, enumerable }) {
  return {
    get: () => value,
    set(own) {
      if (this === owner) throw new TypeError(`${name} is shared by all hooks and cannot be set`);
      defineProperty(this, name, { value: own, writable: true, enumerable: true, configurable: true });
    },
    enumerable,
    configurable: false,
  };
}
