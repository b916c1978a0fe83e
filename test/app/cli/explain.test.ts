import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { findBreak } from '../../../src/finance/use-cases/reconcile/explain-break.ts';
import type { ReportJson } from '../../../src/finance/rules/reconcile/report.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { sealAll, testSigner } from '../../support/log.ts';
import { tollbook } from '../../support/program.ts';
import { endOfPeriod, exportSealed, itemsOf, paid } from '../../support/reconcile.ts';
import { sendTokens } from '../../support/tokens.ts';

const chain = useChain();
const network = 'eip155:84532';

test('a break that is explained stays so in every later run, and the exit code tells explained from open', async () => {
  const { database, gateway, from, config, json, run, report } = await paid(chain);
  const strays = await sendTokens(chain.rpcUrl, devnetKeys.payer, chain.token, [
    { to: payTo, atoms: 5n },
    { to: payTo, atoms: 6n },
  ]);
  const to = await endOfPeriod(chain.rpcUrl);
  const usual = ['--from', from, '--to', to, '--config', config.file, '--json', json];
  const explain = (id: string, as: string, note = 'a partner who pays by hand') =>
    run(['explain', id, '--class', as, '--note', note, '--by', 'ada']);
  expect(await run(usual)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('BREAKS: 2 breaks, 0 open'),
  });
  const idOf = (transaction: string | undefined): string =>
    itemsOf(report(), 'on_chain_without_event').find((item) => item.transaction === transaction)?.break_id ??
    '';
  const [one, other] = [idOf(strays[0]), idOf(strays[1])];
  expect(one).toMatch(/^0x[0-9a-f]{64}$/);

  expect(await explain(one.slice(0, 18), 'known_transfer')).toMatchObject({
    code: 0,
    stdout: `Explained: on_chain_without_event ${one} as known_transfer.\n`,
  });
  await sealAll(database);
  const half = await run(usual);
  expect(half).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('BREAKS: 2 breaks, 1 of them explained, 0 open'),
  });
  expect(half.stdout).toContain('BREAK on_chain_without_event: 2, 1 explained\n');
  expect(half.stdout).toContain('explained as known_transfer by ada: a partner who pays by hand\n');
  expect(report()).toMatchObject({ result: 'breaks', breaks: 2, breaks_explained: 1 });

  expect(await explain(other, 'other')).toMatchObject({ code: 0 });
  await sealAll(database);
  const all = await run(usual);
  expect(all).toMatchObject({
    code: 3,
    stdout: expect.stringContaining('Every break is explained: 2 breaks, 0 open'),
  });
  const text = readFileSync(json, 'utf8');
  const { size } = report().ledger;

  // offline, and in another period
  const exported = await exportSealed(database);
  const proof = ['--checkpoint', exported.checkpoint, '--pubkey', testSigner.verifierKeys[0]];
  const alone = ['--input', exported.file, ...proof, '--rpc', `${network}=${chain.rpcUrl}`];
  const fromExport = await run(['--from', from, '--to', to, ...alone, '--json', '-'], {});
  expect(fromExport).toMatchObject({ code: 3, stdout: `${text}\n` });
  const later = await endOfPeriod(chain.rpcUrl);
  expect((await run(['--from', from, '--to', later, '--config', config.file])).code).toBe(3);

  // what was said does not hold any more; the report of the ledger before stays as it is
  expect(await explain(one, 'open', 'the partner denies it')).toMatchObject({
    code: 0,
    stdout: `Open again: on_chain_without_event ${one}.\n`,
  });
  await sealAll(database);
  expect((await run(usual)).code).toBe(1);
  expect((await run([...usual, '--size', String(size)])).code).toBe(3);
  expect(readFileSync(json, 'utf8')).toBe(text);
  expect(await tollbook(['verify'], { DATABASE_URL: database.url })).toMatchObject({ code: 0 });
  await gateway.stop();
});

test('an explanation names one break of a stored report, a class, a note and who says it', async () => {
  const { run } = await paid(chain);
  const given = ['--class', 'other', '--note', 'x', '--by', 'ada'];
  const id = `0x${'ab'.repeat(32)}`;
  expect(await run(['explain', id, ...given])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('reconcile again'),
  });
  for (const args of [
    given,
    ['7', ...given],
    [id, id, ...given],
    [id, ...given.slice(2)],
    [id, ...given, '--class', 'mine'],
    [id, '--class', 'other', '--by', 'ada'],
    [id, '--class', 'other', '--note', 'x'],
  ])
    expect(await run(['explain', ...args])).toMatchObject({ code: 2 });
});

/** A report with these breaks. */
const reportWith = (...ids: string[]) =>
  ({
    classes: { foreign_use: { items: ids.map((break_id) => ({ break_id, of: 'transfer', network })) } },
  }) as unknown as ReportJson;

test('a break is found in the first report that has one with these digits, if only one has', async () => {
  const reports = [reportWith('0xaa01'), reportWith('0xbb01', '0xbb02', '0xcc01'), reportWith('0xcc02')];
  expect(await findBreak(reports, '0xaa')).toMatchObject({ kind: 'found', breakId: '0xaa01' });
  expect(await findBreak(reports, '0xbb')).toEqual({ kind: 'ambiguous' });
  expect(await findBreak(reports, '0xcc')).toMatchObject({ breakId: '0xcc01', itemClass: 'foreign_use' });
  expect(await findBreak(reports, '0xdd')).toEqual({ kind: 'unknown' });
});
