import { createReadStream } from 'node:fs';
import { isTrailer, takeLines } from './tree-roots.ts';

/**
 * The leaves of a file that `tollbook export --format jsonl` wrote, in batches.
 * @throws Error if it ends in the middle of a line
 */
export async function* leavesInFile(file: string): AsyncGenerator<readonly Buffer[], undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
    const { lines, rest: next } = splitLines(Buffer.concat([rest, chunk as Buffer]));
    rest = next;
    yield lines.filter((line) => !isTrailer(line));
  }
  if (rest.length > 0)
    throw new Error(`${file} ends in the middle of a line: it is truncated. Export the ledger again`);
}

/** The complete lines, without their ends, and the incomplete one after them. */
export function splitLines(bytes: Buffer): { readonly lines: readonly Buffer[]; readonly rest: Buffer } {
  const lines: Buffer[] = [];
  const end = takeLines(bytes, (line) => lines.push(line));
  return { lines, rest: bytes.subarray(end) };
}
