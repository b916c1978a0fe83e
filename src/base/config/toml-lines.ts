import { parse } from 'smol-toml';
import type { Path } from './mistakes.ts';

/*
 * smol-toml returns values without their lines. This scanner finds the lines. It runs only on text that
 * smol-toml has accepted, so it checks nothing: it only has to know where keys and values begin and end.
 */

interface Scanner {
  readonly text: string;
  at: number;
  /** Line of `counted`; positions only move forward, so counting continues from there. */
  line: number;
  counted: number;
  readonly lines: Map<string, number>;
  /** Elements seen so far of each array of tables. */
  readonly elements: Map<string, number>;
}

const blank = /(?:[\s\uFEFF]|#[^\n]*)*/y;
const dots = /[ \t]*\.[ \t]*/y;
const keyPart = /"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+/y;
const scalars = [
  /"""(?:[^"\\]+|\\[\s\S]|"{1,2}(?!"))*"{3,5}/y,
  /'''(?:[^']+|'{1,2}(?!'))*'{3,5}/y,
  /"(?:[^"\\\n]|\\.)*"/y,
  /'[^'\n]*'/y,
  /[^,\]}#\r\n]+/y,
];

/**
 * Maps key paths of a valid TOML document to lines counted from 1.
 * A path that the text does not name answers with its nearest ancestor's line; undefined if none has one.
 */
export function findLines(text: string): (path: Path) => number | undefined {
  const scanner: Scanner = {
    text,
    at: 0,
    line: 1,
    counted: 0,
    lines: new Map(),
    elements: new Map(),
  };
  scanDocument(scanner);
  return (path) => {
    for (let length = path.length; length > 0; length -= 1) {
      const line = scanner.lines.get(nameOf(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return undefined;
  };
}

function scanDocument(scanner: Scanner): void {
  let table: Path = [];
  for (;;) {
    take(scanner, blank);
    if (scanner.at >= scanner.text.length) return;
    if (scanner.text[scanner.at] === '[') table = scanHeader(scanner);
    else scanPair(scanner, table);
  }
}

/** `[a.b]` or `[[a.b]]`: returns the path that the pairs below it belong to. */
function scanHeader(scanner: Scanner): Path {
  const isArray = scanner.text.startsWith('[[', scanner.at);
  const line = lineHere(scanner);
  scanner.at += isArray ? 2 : 1;
  const keys = scanKey(scanner);
  take(scanner, blank);
  scanner.at += isArray ? 2 : 1;
  return openTable(scanner, keys, isArray, line);
}

function openTable(scanner: Scanner, keys: readonly string[], isArray: boolean, line: number): Path {
  let path: Path = [];
  for (const [position, key] of keys.entries()) {
    path = [...path, key];
    const name = nameOf(path);
    note(scanner, path, line);
    if (isArray && position === keys.length - 1) {
      scanner.elements.set(name, (scanner.elements.get(name) ?? 0) + 1);
    }
    const count = scanner.elements.get(name);
    if (count !== undefined) path = [...path, count - 1];
  }
  note(scanner, path, line);
  return path;
}

/** `a.b = value`, in a table or inline. */
function scanPair(scanner: Scanner, table: Path): void {
  const line = lineHere(scanner);
  let path = table;
  for (const key of scanKey(scanner)) {
    path = [...path, key];
    note(scanner, path, line);
  }
  take(scanner, blank);
  scanner.at += 1; // the equals sign
  scanValue(scanner, path);
}

function scanKey(scanner: Scanner): string[] {
  const keys: string[] = [];
  do {
    take(scanner, blank);
    keys.push(plainKey(take(scanner, keyPart)));
  } while (take(scanner, dots) !== '');
  return keys;
}

/** Undoes quotes and escapes with the parser's own rules, so that both spell every key alike. */
function plainKey(source: string): string {
  if (!/^["']/.test(source)) return source;
  return Object.keys(parse(`${source}=0`))[0] ?? source;
}

function scanValue(scanner: Scanner, path: Path): void {
  take(scanner, blank);
  const first = scanner.text[scanner.at];
  if (first === '[') scanArray(scanner, path);
  else if (first === '{') scanInlineTable(scanner, path);
  else scanScalar(scanner);
}

function scanScalar(scanner: Scanner): void {
  for (const scalar of scalars) if (take(scanner, scalar) !== '') return;
  // Not reached in valid TOML; but wrong lines are better than an endless loop.
  scanner.at += 1;
}

function scanArray(scanner: Scanner, path: Path): void {
  let index = 0;
  scanList(scanner, ']', () => {
    const element = [...path, index];
    note(scanner, element, lineHere(scanner));
    scanValue(scanner, element);
    index += 1;
  });
}

function scanInlineTable(scanner: Scanner, path: Path): void {
  scanList(scanner, '}', () => scanPair(scanner, path));
}

function scanList(scanner: Scanner, end: string, scanItem: () => void): void {
  scanner.at += 1;
  while (scanner.at < scanner.text.length) {
    take(scanner, blank);
    const next = scanner.text[scanner.at];
    if (next === ',') scanner.at += 1;
    else if (next === end) break;
    else scanItem();
  }
  scanner.at += 1;
}

/** Moves over what the sticky pattern matches here and returns it; empty when nothing does. */
function take(scanner: Scanner, pattern: RegExp): string {
  pattern.lastIndex = scanner.at;
  const found = pattern.exec(scanner.text)?.[0] ?? '';
  scanner.at += found.length;
  return found;
}

function lineHere(scanner: Scanner): number {
  for (; scanner.counted < scanner.at; scanner.counted += 1) {
    if (scanner.text[scanner.counted] === '\n') scanner.line += 1;
  }
  return scanner.line;
}

/** The first line that names a path is the one to show. */
function note(scanner: Scanner, path: Path, line: number): void {
  const name = nameOf(path);
  if (!scanner.lines.has(name)) scanner.lines.set(name, line);
}

function nameOf(path: Path): string {
  return JSON.stringify(path);
}
