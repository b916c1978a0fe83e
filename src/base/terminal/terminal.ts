import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ExitCode, exitCodes } from './exit-codes.ts';

/** Lets a command end quietly if its reader has left, as in `tollbook calls dead | head -1`: its further output is dropped. */
export function outlastReaders(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (hasLeft(error)) return;
      process.stderr.write(`the output could not be written: ${error.message}\n`);
      process.exit(exitCodes.notDone);
    });
}

/** After the first write that failed, a stream has other errors for those that follow. */
function hasLeft({ code }: NodeJS.ErrnoException): boolean {
  return ['EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_PREMATURE_CLOSE'].includes(code ?? '');
}

/** Writes a stream of bytes to standard output. False if its reader has left before the end. */
export async function print(bytes: Readable): Promise<boolean> {
  try {
    await pipeline(bytes, process.stdout, { end: false });
    return true;
  } catch (error) {
    if (error instanceof Error && hasLeft(error)) return false;
    throw error;
  }
}

/** Prints a command's result on standard output. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints an error, or a note that is not part of the result, on standard error. */
export function fail(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Says why a command was not done. */
export function notDone(why: string): ExitCode {
  fail(why);
  return exitCodes.notDone;
}

/** Says which fault a command has found in its data. */
export function finding(fault: string): ExitCode {
  fail(fault);
  return exitCodes.finding;
}

/** npm delivers Ctrl-C twice: only a signal that comes later than this is meant as a second one. */
const twiceMs = 1_000;

/** Resolves at the first SIGINT or SIGTERM, and at the next one that was sent on its own. */
export function twoSignals(): {
  readonly first: Promise<NodeJS.Signals>;
  readonly second: Promise<NodeJS.Signals>;
} {
  const first = Promise.withResolvers<NodeJS.Signals>();
  const second = Promise.withResolvers<NodeJS.Signals>();
  let firstMs: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      firstMs ??= performance.now();
      first.resolve(signal);
      if (performance.now() - firstMs > twiceMs) second.resolve(signal);
    });
  return { first: first.promise, second: second.promise };
}

/** Resolves at the first SIGINT or SIGTERM and ignores later ones: npm delivers Ctrl-C twice, and the second must not interrupt the shutdown. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve(signal));
  });
}
