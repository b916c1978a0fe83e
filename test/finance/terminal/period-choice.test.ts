import { expect, test } from 'vitest';
import { appendAll } from '../../support/log.ts';
import { createDatabase } from '../../support/database.ts';
import { tollbook } from '../../support/program.ts';
import type { StreamEvent } from '../../support/synthetic-ledger.ts';

const transaction = `0x${'5'.repeat(64)}`;

const sweep = {
  stream: `sweep:84532:${transaction}:0`,
  event: {
    type: 'operator_sweep_recorded',
    data: {
      network: 'eip155:84532',
      asset: `0x${'5f'.repeat(20)}`,
      symbol: 'USDC',
      decimals: 6,
      pay_to: `0x${'90'.repeat(20)}`,
      swept_to: `0x${'88'.repeat(20)}`,
      amount: '500',
      transaction,
      block_number: '9',
      block_hash: `0x${'02'.repeat(32)}`,
      log_index: 0,
      operator: 'ann',
    },
  },
} as const satisfies StreamEvent;

test('the list of sweeps has those of its dates alone, and tells times in the zone that is named', async () => {
  const database = await createDatabase();
  await appendAll(database, [sweep]);
  const list = (...args: string[]) => tollbook(['sweeps', 'list', ...args], { DATABASE_URL: database.url });
  const listed = await list('--from', '2000-01', '--tz', 'Asia/Kolkata');
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  expect(listed.stdout).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+05:30 {2}0\.000500 USDC/);
  expect((await list('--to', '2000-01')).stdout).toBe('No sweep is recorded.\n');
  expect(await list('--from', '2999-01')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('in the future'),
  });
  expect(await list('--from', 'monday')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--from is a date'),
  });
  expect(await list('--from', '2026-02', '--to', '2026-01')).toMatchObject({ code: 2 });
});
