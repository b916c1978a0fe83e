import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { boundPort } from '../../../src/devnet/ports.ts';
import { signCheckpoint } from '../../../src/base/values/log/checkpoint.ts';
import { withClient } from '../../support/database.ts';
import { testSigner } from '../../support/log.ts';
import { spawnProgram, temporaryFolder, tollbook } from '../../support/program.ts';

const period = '--from 2026-01 --to 2026-02';
const key = `--pubkey ${testSigner.verifierKeys[0]}`;
const digest = `0x${'a'.repeat(64)}`;

test.each([
  ['exprt', 'tollbook has no command exprt; `tollbook --help` lists them all'],
  // an ignored filter would look like a filter without results
  ['period list --from 2026-01', 'tollbook period list takes no arguments, not --from'],
  [`verify absent.jsonl ${key}`, 'the export absent.jsonl cannot be read: there is no such file'],
  ['verify --checkpoint absent', 'without --pubkey a checkpoint proves nothing'],
  ['verify --pubkey absent', '--pubkey absent is neither a key nor a file: there is no such file'],
  [
    `reconcile ${period} --input absent.jsonl`,
    'the export absent.jsonl cannot be read: there is no such file',
  ],
  [
    `reconcile ${period} --input package.json --checkpoint absent ${key}`,
    '--checkpoint absent cannot be read: there is no such file',
  ],
  [
    `refunds record --quote-digest ${digest} --tx ${digest}`,
    "an RPC is missing: name one with --rpc NETWORK=URL, or the gateway's configuration with --config FILE",
  ],
  [`reconcile ${period} --checkpoint x`, '--checkpoint goes with --input: the database has its own'],
  [
    `sweeps record --network eip155:1 --tx ${digest} --rpc http://127.0.0.1:1`,
    '--rpc is NETWORK=URL, such as eip155:8453=URL',
  ],
  [
    `export --format csv ${period} --input /dev/null --exported-at 2026-02 --out /absent/a.csv`,
    '--out /absent/a.csv cannot be written: its folder does not exist or is not writable',
  ],
  [
    'refunds batch --network eip155:1 --out /absent/a.json --rpc eip155:1=http://127.0.0.1:1',
    '--out /absent/a.json cannot be written: its folder does not exist or is not writable',
  ],
  [
    'refunds batch --network eip155:1 --out batch.json --safe docs --rpc eip155:1=http://127.0.0.1:1',
    '--safe docs cannot be written: it is a folder',
  ],
  ['export --out docs', '--out docs cannot be written: it is a folder'],
  // a month of a slow chain takes long
  [
    `reconcile ${period} --rpc eip155:1=http://127.0.0.1:1 --json /absent/a.json`,
    '--json /absent/a.json cannot be written: its folder does not exist or is not writable',
  ],
  [
    `reconcile ${period} --rpc eip155:1=http://127.0.0.1:1 --csv docs`,
    '--csv docs cannot be written: it is a folder',
  ],
  [
    `reconcile ${period} --rpc eip155:1=http://127.0.0.1:1 --input docs`,
    'the export docs cannot be read: it is a folder',
  ],
])('wrong arguments are refused with one line and exit code 2: %s', async (args, words) => {
  expect(await tollbook(args.split(' '))).toMatchObject({ code: 2, stdout: '', stderr: `${words}\n` });
});

test('an empty file is not an export: it is neither sound nor clean nor the books of anything', async () => {
  const file = path.join(temporaryFolder(), 'ledger.jsonl');
  writeFileSync(file, '');
  const given = ['--input', file, '--exported-at', '2026-02'];
  for (const args of [
    ['verify', file],
    ['reconcile', ...period.split(' '), '--input', file, '--rpc', 'eip155:1=http://127.0.0.1:1'],
    ['period', 'check', '2026-01', '--input', file],
    ['export', '--format', 'csv', ...period.split(' '), ...given],
    ['aging', '--as-of', '2026-01', ...given],
  ])
    expect(await tollbook(args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `the export ${file} is empty: it was not written to its end. Export the ledger again\n`,
    });
});

test('a database without a ledger is reported in one line that says what to do', async () => {
  const name = `empty_${randomBytes(8).toString('hex')}`;
  const server = inject('serverUrl').replace('DATABASE', 'postgres');
  await withClient(server, (admin) => admin.query(`create database ${name}`));
  onTestFinished(async () => {
    await withClient(server, (admin) => admin.query(`drop database ${name}`));
  });
  const env = { DATABASE_URL: inject('serverUrl').replace('DATABASE', name) };
  for (const args of [['refunds', 'due'], ['verify'], ['period', 'list'], ['credit', 'list']])
    expect(await tollbook(args, env)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^the database that DATABASE_URL names has no ledger, or an older one: .*Check the URL; its owner runs `tollbook migrate`\n$/,
      ),
    });
});

test('a checkpoint stays valid with empty lines at its end, which editors and shells add', async () => {
  const file = path.join(temporaryFolder(), 'checkpoint');
  const ledger = path.join(temporaryFolder(), 'empty.jsonl');
  writeFileSync(ledger, `${JSON.stringify({ counters: {}, export: 1, seq: 0 })}\n`);
  const head = { origin: testSigner.name, size: 0, root: createHash('sha256').digest() };
  writeFileSync(file, `${signCheckpoint(head, testSigner)}\n\n`);
  const { code, stdout } = await tollbook(['verify', ledger, '--checkpoint', file, ...key.split(' ')]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`ok     ${file}`) });
});

test('a command whose reader has left ends quietly', () => {
  const script = `${JSON.stringify(process.execPath)} src/app/cli/tollbook.ts --help | true; exit $PIPESTATUS`;
  const { status, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

test('the ports that are chosen are checked together, before anything is started', async () => {
  const taken = [createServer(), createServer()];
  const ports: string[] = [];
  for (const server of taken) {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    ports.push(String(boundPort(server)));
  }
  const [gateway = '', chain = ''] = ports;
  const dir = temporaryFolder();
  const args = ['start', '--dir', dir, '--port', gateway, '--chain-port', chain];
  const { code, stdout, stderr } = await tollbook(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(
    `Port ${gateway} is in use, and the gateway needs it: choose another with --port.`,
  );
  expect(stderr).toContain(
    `Port ${chain} is in use, and the chain needs it: choose another with --chain-port.`,
  );
  expect(existsSync(path.join(dir, 'postgres'))).toBe(false);
  expect(await tollbook(['devnet', '--dir', dir, '--chain-port', chain])).toMatchObject({ code: 2 });
  expect(await tollbook(['devnet', '--chain-port', 'x'])).toMatchObject({ code: 2 });
});

test('the list of commands, and the help of one, are shown without loading any library', async () => {
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({
      load(url, context, next) {
        if (url.includes('/node_modules/')) console.error(url);
        return next(url, context);
      },
    });`;
  const node = [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(hook)}`];
  for (const args of [['--help'], ['export', '--help']]) {
    const program = spawnProgram([...node, 'src/app/cli/tollbook.ts', ...args], process.cwd());
    expect(await program.ended).toMatchObject({ code: 0, stderr: '' });
  }
});
