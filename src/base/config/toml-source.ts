import { type AST, ParseError, parseTOML } from 'toml-eslint-parser';
import { ConfigError, type Path, type Lines } from './mistakes.ts';

/** A parsed TOML file with its lines. Integers are bigints, so that floats and integers differ. */
export interface TomlSource extends Lines {
  readonly root: unknown;
}

/** Parses TOML. Throws a ConfigError with the line where the syntax breaks: nothing after it can be judged. */
export function readToml(source: string, file: string): TomlSource {
  const text = source.replace(/^\uFEFF/, '');
  try {
    return { file, ...readProgram(parseTOML(text, { tomlVersion: '1.1' })) };
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    const before = text.slice(0, error.index).trimEnd();
    // a missing value or equals sign is noticed where the next line begins
    const isLate = before.endsWith('=') || /equals sign/.test(error.message);
    const line = isLate ? before.split('\n').length : error.lineNumber;
    throw new ConfigError([{ path: '', line, file, message: `is not TOML: ${error.message}` }]);
  }
}

type Table = Record<string | number, unknown>;

function readProgram({ body: [top] }: AST.TOMLProgram): Omit<TomlSource, 'file'> {
  const root: Table = {};
  const lines = new Map<string, number>();
  /** The first line that names a path, or a path below it, is the one to show. */
  const note = (path: Path, { loc }: AST.TOMLNode): void => {
    for (let length = 1; length <= path.length; length += 1) {
      const name = JSON.stringify(path.slice(0, length));
      if (!lines.has(name)) lines.set(name, loc.start.line);
    }
  };
  const readPair = (pair: AST.TOMLKeyValue, table: Table, tablePath: Path): void => {
    const keys = pair.key.keys.map((key) => (key.type === 'TOMLBare' ? key.name : key.value));
    const path = [...tablePath, ...keys];
    note(path, pair);
    const last = keys.pop() ?? '';
    define(tableAt(table, keys), last, readValue(pair.value, path));
  };
  const readValue = (node: AST.TOMLContentNode, path: Path): unknown => {
    if (node.type === 'TOMLArray')
      return node.elements.map((element, index) => {
        note([...path, index], element);
        return readValue(element, [...path, index]);
      });
    if (node.type === 'TOMLInlineTable') {
      const table: Table = {};
      for (const pair of node.body) readPair(pair, table, path);
      return table;
    }
    return node.kind === 'integer' ? node.bigint : node.value;
  };
  for (const node of top.body) {
    if (node.type === 'TOMLKeyValue') {
      readPair(node, root, []);
      continue;
    }
    note(node.resolvedKey, node);
    const table = tableAt(root, node.resolvedKey);
    for (const pair of node.body) readPair(pair, table, node.resolvedKey);
  }
  const lineOf = (path: Path): number | undefined =>
    path.length === 0 ? undefined : (lines.get(JSON.stringify(path)) ?? lineOf(path.slice(0, -1)));
  return { root, lineOf };
}

/** The table of a path; what is missing on the way is added. */
function tableAt(root: Table, path: Path): Table {
  let table = root;
  for (const [place, key] of path.entries()) {
    if (!Object.hasOwn(table, key)) define(table, key, typeof path[place + 1] === 'number' ? [] : {});
    table = table[key] as Table;
  }
  return table;
}

/** Also defines a key such as `__proto__` as any other. */
function define(table: Table, key: string | number, value: unknown): void {
  Object.defineProperty(table, key, { value, configurable: true, enumerable: true, writable: true });
}
