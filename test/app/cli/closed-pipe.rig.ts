import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { childEnvironment } from '../../support/child-environment.ts';
import { insertClaims } from '../../support/log.ts';
import { busyLedger, costOf } from '../../support/synthetic-ledger.ts';
import { sealedLedger, tamper } from '../../support/verify.ts';
import { tamperings } from '../../support/tampering.ts';

/** Runs a command whose reader has left before the first byte: every write of it fails. */
async function unread(args: readonly string[], url: string) {
  const script = `"$0" src/app/cli/tollbook.ts "$@" | true; exit $PIPESTATUS`;
  const child = spawn('bash', ['-c', script, process.execPath, ...args], {
    env: { ...childEnvironment(), DATABASE_URL: url },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close') as Promise<[number]>]);
  return { args: args.join(' '), code, stderr };
}

test('a command that lists or exports ends quietly and with its own code where its reader has left', async () => {
  const { database } = await sealedLedger([...busyLedger().take(114), costOf(1)], 60);
  await insertClaims(database);
  const books = ['--from', '2020-01', '--to', new Date().toISOString()];
  const commands = [
    ['--help'],
    ['verify'],
    ['refunds', 'due'],
    ['aging'],
    ['aging', '--format', 'csv'],
    ['export'],
    ['export', '--from-seq', '50'],
    ...['csv', 'parquet', 'beancount', 'hledger', 'summary', 'summary-page'].map((format) => [
      'export',
      '--format',
      format,
      ...books,
    ]),
    ['period', 'list'],
    ['sweeps', 'list'],
    ['transfers', 'list'],
    ['costs', 'list'],
    ['settlements'],
    ['calls', 'dead'],
    ['spend', 'list'],
    ['credit', 'list'],
    ['keys', 'list'],
    ['tokens', 'list'],
    ['operators', 'list'],
  ];
  for (const args of commands)
    expect(await unread(args, database.url)).toEqual({ args: args.join(' '), code: 0, stderr: '' });
  const [edit] = tamperings;
  if (edit) await tamper(database, edit);
  expect(await unread(['verify'], database.url)).toEqual({ args: 'verify', code: 1, stderr: '' });
});
