import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { exportLines } from '../audit/export.ts';
import { withLedger } from './ledger.ts';
import { fail } from './terminal.ts';

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      format: { type: 'string', default: 'jsonl' },
      'from-seq': { type: 'string', default: '1' },
      out: { type: 'string' },
    },
  });
  const from = values['from-seq'];
  const wrong =
    values.format !== 'jsonl'
      ? 'which format? --format jsonl'
      : /^[1-9]\d{0,14}$/.test(from)
        ? undefined
        : '--from-seq is the first event wanted, counted from 1';
  if (wrong !== undefined) {
    fail(wrong);
    return 64;
  }
  await withLedger(async ({ pool }) => {
    const lines = Readable.from(exportLines(pool, Number(from)), { objectMode: true, highWaterMark: 1 });
    if (values.out === undefined) await pipeline(lines, process.stdout, { end: false });
    else await pipeline(lines, createWriteStream(values.out, { flags: from === '1' ? 'w' : 'a' }));
  });
  return 0;
}
