import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder, startTollbook } from '../../../support/program.ts';
import { paidJob } from '../../../support/synthetic-ledger.ts';
import { leafOf, trailerOf } from './support.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');
const jobs = 60_000;

/** A ledger of 420,000 events, a paid job a minute: far more than the heap that it is read with. */
async function largeLedger(file: string): Promise<void> {
  const out = createWriteStream(file);
  let seq = 0;
  for (let n = 0; n < jobs; n++) {
    const beganMs = startMs + n * 60_000;
    const leaves = paidJob(n, { startMs: beganMs }).map(({ stream, event }, i) =>
      leafOf({
        ...event,
        seq: ++seq,
        stream,
        version: i + 1,
        at: new Date(beganMs + i * 1_000).toISOString(),
      }),
    );
    if (!out.write(leaves.join(''))) await once(out, 'drain');
  }
  out.end(trailerOf(seq));
  await once(out, 'finish');
}

test('books of 420,000 events are written with a heap that could not hold what was open at some time in them', async () => {
  const dir = temporaryFolder();
  const ledger = path.join(dir, 'ledger.jsonl');
  await largeLedger(ledger);
  for (const format of ['beancount']) {
    const out = path.join(dir, format);
    const args = ['--format', format, '--from', '2026-01', '--to', '2026-02-11', '--input', ledger];
    const limited = { NODE_OPTIONS: '--max-old-space-size=60' };
    const ended = await startTollbook(['export', ...args, '--out', out], limited).ended;
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect((await stat(out)).size).toBeGreaterThan(1_000_000);
  }
});
