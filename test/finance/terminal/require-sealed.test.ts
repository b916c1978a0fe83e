import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { useChain } from '../../support/devnet.ts';
import { exportTo, sealAll, testSigner } from '../../support/log.ts';
import { temporaryFolder, tollbook, withoutProgress } from '../../support/program.ts';
import { endOfPeriod, exportSealed, paid } from '../../support/reconcile.ts';
import { tamper } from '../../support/verify.ts';

const chain = useChain();
const key = ['--pubkey', testSigner.verifierKeys[0]];
const required = ['--require-sealed', ...key];

/** Every command with the option, by its name. `period close` comes last: it appends. */
function commandsOf(period: readonly string[], name: string, out: string): Record<string, readonly string[]> {
  return {
    verify: ['verify'],
    'refunds due': ['refunds', 'due'],
    'refunds batch': [
      'refunds',
      'batch',
      '--network',
      'eip155:84532',
      '--out',
      `${out}.batch`,
      '--rpc',
      `eip155:84532=${chain.rpcUrl}`,
    ],
    aging: ['aging'],
    export: ['export', '--out', `${out}.jsonl`],
    'export of books': ['export', '--format', 'csv', ...period, '--out', `${out}.csv`],
    reconcile: ['reconcile', ...period, '--rpc', `eip155:84532=${chain.rpcUrl}`],
    'period close': ['period', 'close', name, '--by', 'ada', '--despite', 'a test'],
  };
}

async function endsOf(commands: Record<string, readonly string[]>, env: Record<string, string>) {
  return Promise.all(
    Object.entries(commands).map(async ([name, args]) => {
      const { code, stdout, stderr } = await tollbook([...args, ...required], env);
      return { name, code, stdout, words: withoutProgress(stderr) };
    }),
  );
}

test('--require-sealed ends with 0 if a checkpoint covers every event that is used, with 2 where none does yet, and with 1 if one was changed', async () => {
  const { database, gateway, from, config } = await paid(chain);
  await gateway.stop();
  const { env } = config;
  expect(await tollbook(['credit', 'grant', 'nobody', '1'], env)).toMatchObject({ code: 2 });
  for (const name of ['one', 'two', 'three'])
    expect(await tollbook(['keys', 'create', '--account', name], env)).toMatchObject({ code: 0 });
  // every event is recorded before the end
  const madeAt = new Date().toISOString();
  let to = '';
  while (to <= madeAt) to = await endOfPeriod(chain.rpcUrl);
  const out = path.join(temporaryFolder(), 'books');
  const period = ['--from', from, '--to', to];
  const { 'period close': close = [], ...others } = commandsOf(period, `${from}/${to}`, out);
  const head = `select max(size)::int as size from tollbook.log_head`;
  const sizeOf = async (query: string) =>
    (await database.pool.query<{ size: number }>(query)).rows[0]?.size ?? 0;
  const covered = await sizeOf(head);
  const events = await sizeOf('select max(seq)::int as size from tollbook.event');
  expect(events).toBeGreaterThan(covered);

  // not sealed yet
  const early = await endsOf(others, env);
  const uncovered = expect.stringContaining(
    `not sealed: the newest checkpoint covers ${covered} events, and ${events - covered} of the ${events} that were read are not covered`,
  ) as string;
  expect(early.map(({ name, code, words: said }) => ({ name, code, words: said }))).toEqual(
    Object.keys(others).map((name) => ({ name, code: 2, words: uncovered })),
  );
  // verify has printed what it read
  expect(early.filter(({ stdout }) => stdout !== '').map(({ name }) => name)).toEqual(['verify']);
  expect(['jsonl', 'csv', 'batch'].filter((ending) => existsSync(`${out}.${ending}`))).toEqual([]);

  // sealed
  await sealAll(database);
  expect((await endsOf(others, env)).map(({ name, code, words }) => ({ name, code, words }))).toEqual(
    Object.keys(others).map((name) => ({ name, code: 0, words: '' })),
  );

  // changed after sealing
  const all = { ...others, 'period close': close };
  const change = (sign: '+' | '-') =>
    tamper(database, {
      what: 'a time',
      words: /./,
      change: (owner) =>
        owner.query(`update tollbook.event set at = at ${sign} interval '1 millisecond' where seq = 2`),
    });
  await change('+');
  const stop = expect.stringMatching(/^the first \d+ events are not as they were sealed: stop/) as string;
  expect(
    (await endsOf(all, env)).map(({ name, code, words: said }) => ({ name, code, words: said })),
  ).toEqual(Object.keys(all).map((name) => ({ name, code: 1, words: name === 'verify' ? '' : stop })));
  await change('-');

  // a ledger without a log
  await tamper(database, {
    what: 'the log',
    words: /./,
    change: (owner) =>
      owner.query('create table kept as select * from tollbook.log_head; delete from tollbook.log_head'),
  });
  const rest = Object.fromEntries(Object.entries(all).filter(([name]) => name !== 'verify'));
  const none = expect.stringMatching(/^not sealed: no checkpoint covers the \d+ events/) as string;
  expect(
    (await endsOf(rest, env)).map(({ name, code, words: said }) => ({ name, code, words: said })),
  ).toEqual(Object.keys(rest).map((name) => ({ name, code: 2, words: none })));
  await tamper(database, {
    what: 'the log',
    words: /./,
    change: (owner) => owner.query('insert into tollbook.log_head select * from kept; drop table kept'),
  });
  expect((await tollbook([...close, ...required], env)).code).toBe(0);
});

const allEnd = (code: number) => ({ verify: code, aging: code, 'export of books': code, reconcile: code });

test('--require-sealed of an export needs a checkpoint that covers what is used of it', async () => {
  const { database, gateway, from, to, config } = await paid(chain);
  await gateway.stop();
  const { file, checkpoint } = await exportSealed(database);
  const period = ['--from', from, '--to', to];
  const input = (name: string) => ['--input', name, '--exported-at', to];
  const commandsOn = (name: string): Record<string, readonly string[]> => ({
    verify: ['verify', name],
    aging: ['aging', ...input(name), '--as-of', to],
    'export of books': ['export', '--format', 'csv', ...period, ...input(name)],
    reconcile: ['reconcile', ...period, '--input', name, '--rpc', `eip155:84532=${chain.rpcUrl}`],
  });
  const codesOf = async (name: string, proof: readonly string[]) =>
    Object.fromEntries(
      await Promise.all(
        Object.entries(commandsOn(name)).map(async ([command, args]) => [
          command,
          (await tollbook([...args, '--require-sealed', ...proof])).code,
        ]),
      ),
    ) as Record<string, number>;
  expect(await codesOf(file, ['--checkpoint', checkpoint, ...key])).toEqual(allEnd(0));
  expect(await codesOf(file, key)).toEqual(allEnd(2));

  // an event that the checkpoint does not cover is used where all are
  expect(await tollbook(['keys', 'create', '--account', 'late'], config.env)).toMatchObject({ code: 0 });
  const longer = `${file}.longer`;
  await exportTo(longer, database);
  expect(await codesOf(longer, ['--checkpoint', checkpoint, ...key])).toEqual({ ...allEnd(0), verify: 2 });

  const changed = `${file}.changed`;
  copyFileSync(file, changed);
  const [first = '', second = '', ...rest] = readFileSync(changed, 'utf8').split('\n');
  writeFileSync(
    changed,
    [first, second.replace(/\dZ"/, (digit) => `${digit.startsWith('0') ? 1 : 0}Z"`), ...rest].join('\n'),
  );
  expect(readFileSync(changed, 'utf8')).not.toBe(readFileSync(file, 'utf8'));
  expect(await codesOf(changed, ['--checkpoint', checkpoint, ...key])).toEqual(allEnd(1));
});

test.each([
  [['aging', '--pubkey', 'x'], /--checkpoint and --pubkey go with --require-sealed/],
  [
    ['refunds', 'batch', '--network', 'eip155:1', '--out', 'x', '--pubkey', 'x'],
    /--checkpoint and --pubkey go with --require-sealed/,
  ],
  [['aging', '--require-sealed', '--checkpoint', 'x'], /--checkpoint goes with --input/],
  [['aging', '--require-sealed', '--input', 'x', '--as-of', '2026-01'], /needs --checkpoint and --pubkey/],
  [
    ['export', '--require-sealed', '--format', 'csv', '--from', '2026-01', '--to', '2026-02', '--input', 'x'],
    /needs --checkpoint/,
  ],
])('what --require-sealed needs is said before anything is read: %s', async (args, words) => {
  expect(await tollbook(args)).toMatchObject({ code: 2, stderr: expect.stringMatching(words) });
});
