import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import type { ReportJson } from '../../../src/finance/rules/reconcile/report.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { sealAll, testSigner } from '../../support/log.ts';
import { temporaryFolder, tollbook, withoutProgress } from '../../support/program.ts';
import { endOfPeriod, exportSealed, paid } from '../../support/reconcile.ts';
import { sendTokens } from '../../support/tokens.ts';

const chain = useChain();
const network = 'eip155:84532';

test('a month is closed, reviewed with the chains by another person and opened again, and a run that differs from the close ends with 1', async () => {
  const { database, gateway, from, config, json, run } = await paid(chain);
  await gateway.stop();
  const [stray] = await sendTokens(chain.rpcUrl, devnetKeys.payer, chain.token, [{ to: payTo, atoms: 5n }]);
  const to = await endOfPeriod(chain.rpcUrl);
  const name = `${from}/${to}`;
  const period = (...args: string[]) => tollbook(['period', ...args], config.env);
  const reconcile = ['--from', from, '--to', to, '--config', config.file, '--json', json];
  const rpc = ['--rpc', `${network}=${chain.rpcUrl}`];

  expect((await run(reconcile)).code).toBe(1);
  const report = readFileSync(json, 'utf8');
  const zone = ['--tz', 'Europe/Berlin'];
  expect(await period('close', name, '--by', 'ada', ...zone)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('was not closed: 1 break is not explained'),
  });
  expect(await period('close', name, '--by', 'ada', '--despite', 'with the auditor', ...zone)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('of jobs.example/log: 1 break, 0 open items.'),
  });
  const review = await period('review', name, '--by', 'bob', ...rpc, '--pubkey', testSigner.verifierKeys[0]);
  expect({ code: review.code, stderr: withoutProgress(review.stderr) }).toEqual({ code: 0, stderr: '' });
  expect(review.stdout).toMatch(
    /^ok {5}head: the first \d+ events\nok {5}csv\n[^]*ok {5}reconciliation\nReviewed: /,
  );

  // what is recorded later of the period shows; the report of then can be made again
  const record = [
    'transfers',
    'record',
    '--network',
    network,
    '--tx',
    stray ?? '',
    '--income',
    ...rpc,
    '--by',
    'ada',
  ];
  expect(await tollbook(record, config.env)).toMatchObject({ code: 0 });
  await sealAll(database);
  expect(await run(reconcile)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /DIFFERS from the close .*class income: 0 then, 1 now; class on_chain_without_event: 1 then, 0 now/,
    ),
  });
  const { size } = (JSON.parse(report) as ReportJson).ledger;
  expect(await run([...reconcile, '--size', String(size)])).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('The same as at the close'),
  });
  expect(readFileSync(json, 'utf8')).toBe(report);

  // offline, with a ledger in which an event of the period was edited
  const { file } = await exportSealed(database);
  const lines = readFileSync(file, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes('"type":"payment_settled"'));
  const edited = path.join(temporaryFolder(), 'edited.jsonl');
  writeFileSync(edited, lines.with(at, lines[at]!.replace(/"amount":"(\d+)"/, '"amount":"1$1"')).join('\n'));
  expect(await period('check', name, '--input', edited)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      /WRONG {2}head: the first \d+ events are others\nWRONG {2}csv: its SHA-256[^]*NOT AS IT WAS CLOSED\n$/,
    ),
  });
  const books = ['export', '--format', 'summary', '--from', from, '--to', to, ...zone];
  expect(await tollbook([...books, '--input', edited])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^DIFFERS from the close .* in Europe\/Berlin by ada .*its SHA-256 is/),
  });
  expect(await tollbook(books, config.env)).toMatchObject({ code: 0, stderr: '' });

  expect(await period('reopen', name, '--reason', 'the stray is known', '--by', 'ada')).toMatchObject({
    code: 0,
  });
  const { stdout: listed } = await period('list');
  expect(listed).toMatch(
    /closed by ada on .*; reviewed by bob on [^,;]*; reopened by ada on .*: the stray is known\n$/,
  );
});

const close = (...args: string[]) => ['close', ...args];

test('a command of periods names one period that is over, and persons and reasons that the ledger can keep', async () => {
  for (const [args, words] of [
    [close('2026-13', '--by', 'ada'), /"2026-13" is not a period/],
    [close('2026-10', '2026-11', '--by', 'ada'), /one argument too many: "2026-11"/],
    [close('2026-10/2026-10', '--by', 'ada'), /the period is empty/],
    [close('2026-11/2026-10', '--by', 'ada'), /reversed/],
    [close('2026-10', '--by', 'ada', '--tz', 'Berlin'), /there is no zone Berlin/],
    [close('2026-10'), /--by is your name/],
    [close('2026-10', '--by', 'ada', '--despite', 'a@b'), /--despite says why/],
    [close('2026-10', '--by', 'ada', '--report', '/absent'), /--report \/absent cannot be read/],
    [['reopen', '2026-10', '--by', 'ada'], /--reason says why/],
    [['check', '2026-10', '--checkpoint', 'x'], /--checkpoint goes with --input/],
  ] as const)
    expect(await tollbook(['period', ...args])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(words),
    });
});
