// Writing a value that was read from JSON and changed in places, so that what was not changed stays as it was.
//
// JavaScript reads 12345678901234567890 as 12345678901234567000 and 1e999 as Infinity. Whoever edits one member
// of an object must not change another one by that: its text is taken over.
//
// Decides only how text is put together; what counts as a change is node_hook.mjs's.

const EXACT = /\d{16}|\d[eE][+-]?\d{3}/; // what may hold a number that JavaScript cannot

/** The JSON of `after`, which was `before` when it was read from this member of the input of `frame`. */
export function rewritten(frame, member, before, after) {
  const plain = JSON.stringify(after);
  if (!EXACT.test(frame)) return plain;
  return merged(parts(parts(frame).get('input')).get(member), before, JSON.parse(plain));
}

function merged(text, before, after) {
  const written = JSON.stringify(after);
  if (JSON.stringify(before) === written) return text;
  const isList = Array.isArray(after);
  if (!isObject(before) || !isObject(after) || Array.isArray(before) !== isList) return written;
  const texts = parts(text);
  const each = Object.keys(after).map((key) => {
    const known = texts.get(key);
    const value = known === undefined ? JSON.stringify(after[key]) : merged(known, before[key], after[key]);
    return isList ? value : `${JSON.stringify(key)}:${value}`;
  });
  return isList ? `[${each.join()}]` : `{${each.join()}}`;
}

/** The texts of the members of an object or of the items of a list, by name or place. */
function parts(text) {
  const found = new Map();
  const start = text.search(/[[{]/);
  const isList = text[start] === '[';
  let name = null;
  let from = start + 1;
  let depth = 0;
  const keep = (end) => {
    const part = text.slice(from, end).trim();
    if (part !== '') found.set(isList ? String(found.size) : name, part);
    from = end + 1;
  };
  for (let at = start + 1; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfText(text, at);
    else if (character === '{' || character === '[') depth++;
    else if (depth && (character === '}' || character === ']')) depth--;
    else if (depth === 0 && character === ':') {
      name = JSON.parse(text.slice(from, at));
      from = at + 1;
    } else if (depth === 0 && character === ',') keep(at);
    else if (depth === 0 && (character === '}' || character === ']')) {
      keep(at);
      break;
    }
  }
  return found;
}

function endOfText(text, start) {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at;
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}
