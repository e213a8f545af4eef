// The modules of one hook: its own instances of its file and of everything that it imports by a path.
//
// Decides how a file becomes a module: ES module or CommonJS, JavaScript or TypeScript, what its imports name,
// and where a file that cannot be read as code goes wrong. Knows nothing of hooks, handlers or calls.
//
// Node keeps one instance of a module for each address, for as long as a thread lives. Two hooks that share a
// file must not share its state, and a changed file must be read anew together with its imports, so modules are
// made here with node:vm, which works alike from Node 20.0 on. What is imported by a name (`node:fs`, packages)
// is Node's own instance: shared by the hooks of a thread, resolved and loaded by Node's rules.
//
// `.mjs` and `.mts` are ES modules, `.cjs` and `.cts` CommonJS. `.js` and `.ts` are ES modules where the nearest
// package.json says "type": "module"; otherwise their text decides: what is no CommonJS but an ES module is one.

import { execFile } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import nodeModule, { createRequire, isBuiltin } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';

const WRAPPER = ['exports', 'require', 'module', '__filename', '__dirname'];
const TYPESCRIPT = new Set(['.ts', '.mts', '.cts']);
const ES = new Set(['.mjs', '.mts']);
const COMMON = new Set(['.cjs', '.cts']);
const BY_PATH = /^(?:\.{0,2}\/|\.{1,2}$|file:)/;

/** What V8 says of an ES module that it was told to read as a script. */
const ONLY_IN_ES = /import statement|'export'|import\.meta|await is only valid|reserved word/;
const CHECK_MS = 5_000;

/** A file whose text is no code. `source` is the JavaScript of which V8 does not say where, or null. */
export class NotCode extends Error {
  constructor(path, cause, source) {
    super(cause.message, { cause });
    this.path = path;
    this.source = source;
  }
}

export class ModuleGraph {
  #modules = new Map(); // vm modules, by path or address
  #common = new Map(); // CommonJS modules, by path
  #linked = new WeakMap();
  #link = (specifier, referrer) => this.#imported(specifier, pathToFileURL(referrer.identifier).href);

  /** Load the file at `path` and what it imports, and run it. Its objects that may have handlers, in order. */
  async load(path) {
    const real = realpathSync(path);
    const file = this.#read(real);
    if (file.compiled) {
      const exports = this.#run(real, file.compiled);
      return isObject(exports) && isObject(exports.default) ? [exports.default, exports] : [exports];
    }
    const module = file.module;
    await this.#ready(module);
    const { namespace } = module;
    return 'default' in namespace ? [namespace.default, namespace] : [namespace];
  }

  /** Read a file: `{compiled}` of CommonJS that has not run, or `{module}`. */
  #read(path) {
    const extension = extname(path);
    let source = readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
    if (TYPESCRIPT.has(extension)) source = withoutTypes(source, path);
    if (COMMON.has(extension)) return { compiled: this.#compile(path, source) };
    if (ES.has(extension) || saysModule(path)) return { module: this.#parse(path, source) };
    try {
      return { compiled: this.#compile(path, source) };
    } catch (asCommon) {
      try {
        return { module: this.#parse(path, source) };
      } catch (asModule) {
        throw ONLY_IN_ES.test(asCommon.message) ? asModule : asCommon;
      }
    }
  }

  // ---- ES modules

  #parse(path, source) {
    const url = pathToFileURL(path).href;
    let module;
    try {
      module = new vm.SourceTextModule(source, {
        identifier: path,
        initializeImportMeta: (meta) => {
          meta.url = url;
          meta.filename = path;
          meta.dirname = dirname(path);
          meta.resolve = (specifier) => resolved(specifier, url);
        },
        importModuleDynamically: (specifier) => this.#dynamic(specifier, url),
      });
    } catch (error) {
      throw new NotCode(path, error, source);
    }
    this.#modules.set(path, module);
    return module;
  }

  async #dynamic(specifier, parent) {
    const module = await this.#imported(specifier, parent);
    await this.#ready(module);
    return module;
  }

  /** Link and run a module, once. */
  async #ready(module) {
    if (module.status === 'unlinked') this.#linked.set(module, module.link(this.#link));
    await this.#linked.get(module);
    if (module.status !== 'evaluating') await module.evaluate();
  }

  async #imported(specifier, parent) {
    const url = resolved(specifier, parent);
    if (!url.startsWith('file:') || !(BY_PATH.test(specifier) || specifier.startsWith('#'))) {
      return this.#modules.get(url) ?? this.#foreign(url);
    }
    const path = existing(fileURLToPath(url), specifier, parent);
    const known = this.#modules.get(path);
    if (known) return known;
    switch (extname(path)) {
      case '.json':
        return this.#synthetic(path, { default: JSON.parse(readFileSync(path, 'utf8')) });
      case '.node':
      case '.wasm':
        return this.#foreign(url);
    }
    if (this.#common.has(path)) return this.#synthetic(path, named(this.#common.get(path).exports));
    const file = this.#read(path);
    return file.module ?? this.#synthetic(path, named(this.#run(path, file.compiled)));
  }

  /** A module of Node's own. */
  async #foreign(url) {
    const namespace = await import(url);
    return this.#modules.get(url) ?? this.#synthetic(url, namespace);
  }

  #synthetic(key, values) {
    const names = Object.keys(values);
    const module = new vm.SyntheticModule(
      names,
      function () {
        for (const name of names) this.setExport(name, values[name]);
      },
      { identifier: key },
    );
    this.#modules.set(key, module);
    return module;
  }

  // ---- CommonJS

  #compile(path, source) {
    const url = pathToFileURL(path).href;
    try {
      return vm.compileFunction(source.replace(/^#!.*/, ''), WRAPPER, {
        filename: path,
        importModuleDynamically: (specifier) => this.#dynamic(specifier, url),
      });
    } catch (error) {
      throw new NotCode(path, error, null);
    }
  }

  #run(path, compiled) {
    const native = createRequire(path);
    const require = (specifier) => this.#required(specifier, native);
    const folder = dirname(path);
    const module = { id: path, filename: path, path: folder, exports: {}, loaded: false, children: [], require };
    const { resolve, extensions } = native;
    Object.assign(require, { resolve, extensions, cache: Object.create(null) });
    this.#common.set(path, module);
    try {
      Reflect.apply(compiled, module.exports, [module.exports, require, module, path, folder]);
    } catch (error) {
      this.#common.delete(path);
      throw error;
    }
    module.loaded = true;
    return module.exports;
  }

  #required(specifier, native) {
    if (isBuiltin(specifier) || !BY_PATH.test(specifier)) return native(specifier);
    const path = native.resolve(specifier);
    const known = this.#common.get(path);
    if (known) return known.exports;
    const extension = extname(path);
    if (extension === '.json') {
      const exports = JSON.parse(readFileSync(path, 'utf8'));
      this.#common.set(path, { exports });
      return exports;
    }
    const isModule = ES.has(extension) || (extension === '.js' && saysModule(path));
    if (extension === '.node' || isModule) return native(path);
    const file = this.#read(path);
    return file.compiled ? this.#run(path, file.compiled) : native(path);
  }
}

/** Where the text of `error`, a `NotCode`, goes wrong: `path:line`, the line and a mark, as Node prints it. */
export async function placeOf(error) {
  const { path, source, cause } = error;
  const printed = source === null ? String(cause.stack) : await checked(source);
  const place = /^(?:.*):(\d+)\r?\n([\s\S]*?\^+)/.exec(printed);
  if (!place) return { line: null, shown: path };
  return { line: Number(place[1]), shown: `${path}:${place[1]}\n${place[2]}` };
}

/** What Node prints when it only reads `source` as an ES module; node:vm keeps the place to itself. */
function checked(source) {
  return new Promise((done) => {
    const options = { timeout: CHECK_MS, env: {}, maxBuffer: 65_536 };
    const words = ['--check', '--input-type=module', '-'];
    const child = execFile(process.execPath, words, options, (_error, _out, printed) => done(printed));
    child.stdin.on('error', () => undefined).end(source);
  });
}

function withoutTypes(source, path) {
  if (typeof nodeModule.stripTypeScriptTypes !== 'function') {
    throw new Error(`TypeScript needs Node 22.13 or newer, and this is ${process.version}`);
  }
  try {
    return nodeModule.stripTypeScriptTypes(source);
  } catch (error) {
    throw new NotCode(path, error, null);
  }
}

/** Whether the nearest package.json makes a module of every `.js`. */
function saysModule(path) {
  for (let folder = dirname(path), above; ; folder = above) {
    try {
      return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))?.type === 'module';
    } catch (error) {
      if (error instanceof SyntaxError) return false;
    }
    above = dirname(folder);
    if (above === folder) return false;
  }
}

function resolved(specifier, parent) {
  if (isBuiltin(specifier)) return specifier.startsWith('node:') ? specifier : `node:${specifier}`;
  return BY_PATH.test(specifier) ? new URL(specifier, parent).href : import.meta.resolve(specifier, parent);
}

function existing(path, specifier, parent) {
  try {
    return realpathSync(path);
  } catch {
    const error = new Error(`Cannot find module '${specifier}' imported from ${fileURLToPath(parent)}`);
    error.code = 'ERR_MODULE_NOT_FOUND';
    throw error;
  }
}

/** What an ES module sees of the exports of CommonJS. */
function named(exports) {
  return isObject(exports) ? { ...exports, default: exports } : { default: exports };
}

function isObject(value) {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
