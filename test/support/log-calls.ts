import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './pages.ts';

/** A line of level warn or above that the program can log. */
export interface LogCall {
  /** Its message; undefined if the source does not state it as one text. */
  readonly message: string | undefined;
  /** `file:line`. */
  readonly at: string;
}

const logged = /\b(?:\w*[lL]og|logger)\??\.(?:warn|error|fatal)\(/g;
/** Passes its third argument on to the log. */
const inBackground = /\binBackground\(/g;
/** What `startLoop`, `startRounds` and the logger's hook pass on to the log. */
const failureMessages = /\b(?:failure|roundFailure)Message(?::| =)\s*((['"])(?:\\.|(?!\2).)*\2)/g;
const literal = /^(['"])((?:\\.|(?!\1).)*)\1$/s;

/** Every such line in `src/`. The devnet and the runner library have no logger. */
export function logCalls(): LogCall[] {
  return globSync('src/**/*.ts', { cwd: root }).flatMap((file) =>
    callsIn(file, readFileSync(path.join(root, file), 'utf8')),
  );
}

/** The lines of one file. */
export function callsIn(file: string, source: string): LogCall[] {
  const at = (index: number) => `${file}:${source.slice(0, index).split('\n').length}`;
  const passed = [...source.matchAll(failureMessages)].map(({ index, 1: text = '' }) => ({
    message: textOf(text, source),
    at: at(index),
  }));
  const background = [...source.matchAll(inBackground)]
    .filter(({ index }) => !source.slice(0, index).endsWith('function '))
    .map(({ index, 0: call }) => ({
      message: textOf(argumentsFrom(source, index + call.length)[2], source),
      at: at(index),
    }));
  const direct = [...source.matchAll(logged)].flatMap(({ index, 0: call }) => {
    const message = argumentsFrom(source, index + call.length).at(-1);
    return message === 'failureMessage' || message === 'roundFailureMessage'
      ? []
      : [{ message: textOf(message, source), at: at(index) }];
  });
  return [...passed, ...background, ...direct];
}

/** A string literal, or a constant of the same file that is one. */
function textOf(argument = '', source: string): string | undefined {
  const [, , text] = literal.exec(argument) ?? [];
  if (text !== undefined) return text.replaceAll(/\\(.)/g, '$1');
  if (!/^\w+$/.test(argument)) return undefined;
  const constant = new RegExp(String.raw`\bconst ${argument} =\s*((['"])(?:\\.|(?!\2).)*\2);`).exec(source);
  return constant?.[1] === undefined ? undefined : textOf(constant[1], source);
}

/** The source of each argument of a call, from behind its opening bracket on. */
function argumentsFrom(source: string, start: number): string[] {
  const found: string[] = [];
  let depth = 0;
  let from = start;
  for (let at = start; at < source.length; at += 1) {
    const char = source[at] ?? '';
    if (`'"\``.includes(char)) at = closing(source, at);
    else if ('([{'.includes(char)) depth += 1;
    else if (')]}'.includes(char) && depth > 0) depth -= 1;
    else if ((char === ',' || char === ')') && depth === 0) {
      const argument = source.slice(from, at).trim();
      if (argument !== '') found.push(argument);
      if (char === ')') return found;
      from = at + 1;
    }
  }
  return found;
}

/** Where a text ends that begins at `start` with its quote. */
function closing(source: string, start: number): number {
  let at = start + 1;
  while (at < source.length && source[at] !== source[start]) at += source[at] === '\\' ? 2 : 1;
  return at;
}
