import { readFileSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { issueOperatorToken } from '../../../src/accounts/use-cases/operator-tokens.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import type { TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { documentOf } from '../../support/documented.ts';
import { payTo, type TestGateway } from '../../support/gateway.ts';
import { testSigner } from '../../support/log.ts';
import { withoutProgress } from '../../support/program.ts';
import { endOfPeriod, exceptionsIn, exportSealed, itemsOf, paid } from '../../support/reconcile.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { sendTokens } from '../../support/tokens.ts';

const chain = useChain();
const network = 'eip155:84532';

async function stored({ pool }: TestDatabase) {
  const { rows } = await pool.query<{ result: string; report: string }>(
    'select result, report from tollbook.reconciliation order by id',
  );
  return rows;
}

test('a period without breaks is clean, its report is stored once, and is the same bytes again and from an export alone', async () => {
  const { database, gateway, config, json, run, report, period, usual } = await paid(chain);
  const first = await run(usual);
  expect({ code: first.code, stderr: withoutProgress(first.stderr) }).toEqual({ code: 0, stderr: '' });
  expect(first.stdout).toMatch(/Clean: 0 breaks, 0 open items\nStored as reconciliation 1\.\n$/);
  const text = readFileSync(json, 'utf8');
  const { accounts, networks, classes, ledger } = report();
  expect(classes).toMatchObject({ matched: { count: 6, kind: 'ok' } });
  expect(Object.keys(classes)).toEqual(['matched']);
  expect(networks).toMatchObject([{ network, is_covered: true, completeness: 'balance' }]);
  expect(ledger).toMatchObject({ fault: null, checkpoint: expect.stringContaining(testSigner.name) });
  for (const account of accounts) {
    const { opening, closing, movements, ledger: own } = account;
    expect(account).toMatchObject({ pay_to: payTo, opening: { how: 'chain' }, closing: { how: 'chain' } });
    expect(movements).toEqual([{ class: 'matched', count: 3, in: own.in, out: '0' }]);
    expect(BigInt(opening.atoms ?? 0) + BigInt(own.in)).toBe(BigInt(closing.atoms ?? 0));
    expect(own.difference_closing).toBe(own.difference_opening);
  }

  // again, also with more in the ledger: the same size gives the same bytes
  expect((await run([...usual, '--size', String(ledger.size), '--twice'])).code).toBe(0);
  expect(readFileSync(json, 'utf8')).toBe(text);

  const exported = await exportSealed(database);
  const proof = ['--checkpoint', exported.checkpoint, '--pubkey', testSigner.verifierKeys[0]];
  const alone = ['--input', exported.file, ...proof, '--rpc', `${network}=${chain.rpcUrl}`];
  const fromExport = await run([...period, ...alone, '--json', '-'], {});
  expect(fromExport).toMatchObject({ code: 0, stdout: `${text}\n` });

  expect(await stored(database)).toEqual([{ result: 'clean', report: text }]);
  await servedAs(gateway, database, text);
  expect(config.env).toHaveProperty('DATABASE_URL');
});

/** The list and the report over HTTP, held against the document. */
async function servedAs(gateway: TestGateway, database: TestDatabase, text: string): Promise<void> {
  const lane = openLane({ url: database.url, role: writerRole });
  const { token } = await issueOperatorToken(
    { ...database, lane },
    { name: 'auditor', scopes: ['audit:read'] },
  );
  const other = await issueOperatorToken({ ...database, lane }, { name: 'other', scopes: ['keys:read'] });
  await lane.close();
  const check = await documentOf(gateway);
  const get = async (address: string, bearer = token) => {
    const answer = await gateway.get(address, { authorization: `Bearer ${bearer}` });
    expect(check('GET', address, answer)).toEqual([]);
    return answer;
  };
  const { json } = await get('/audit/reconciliations');
  const report_sha256 = createHash('sha256').update(text).digest('hex');
  expect(json).toMatchObject({
    reconciliations: [{ id: 1, result: 'clean', breaks: 0, report_sha256 }],
    next: null,
  });
  expect((await get('/audit/reconciliations/1')).text).toBe(text);
  expect((await get('/audit/reconciliations?limit=1')).json.next).not.toBe(null);
  expect((await get('/audit/reconciliations/2')).json.code).toBe('reconciliation_not_found');
  expect((await get('/audit/reconciliations/x')).json.code).toBe('reconciliation_not_found');
  expect((await get('/audit/reconciliations?cursor=7-x')).json.code).toBe('invalid_cursor');
  expect((await get('/audit/reconciliations', other.token)).status).toBe(403);
}

test('a transfer without an event is a break, and so is an amount that was edited in a copy of the ledger', async () => {
  const { database, from, config, json, run, report } = await paid(chain);
  const [stray] = await sendTokens(chain.rpcUrl, devnetKeys.payer, chain.token, [{ to: payTo, atoms: 5n }]);
  const to = await endOfPeriod(chain.rpcUrl);
  const ended = await run(['--from', from, '--to', to, '--config', config.file, '--json', json]);
  expect(ended.code).toBe(1);
  expect(ended.stdout).toContain('BREAK on_chain_without_event: 1');
  expect(ended.stdout).toContain(`0.000005 USDC  transaction ${stray}`);
  expect(exceptionsIn(report())).toEqual([`on_chain_without_event ${stray}`]);
  expect(itemsOf(report(), 'on_chain_without_event')).toMatchObject([{ foreign: false }]);
  const { result, accounts } = report();
  expect(result).toBe('breaks');
  const beyond = accounts.map(
    ({ ledger }) => BigInt(ledger.difference_closing ?? 0) - BigInt(ledger.difference_opening ?? 0),
  );
  expect(beyond.toSorted((a, b) => Number(a - b))).toEqual([0n, 5n]);

  const { file, checkpoint } = await exportSealed(database);
  const lines = readFileSync(file, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes('"type":"payment_settled"'));
  const edited = lines.with(at, lines[at]!.replace(/"amount":"(\d+)"/, '"amount":"1$1"'));
  writeFileSync(file, edited.join('\n'));
  const proof = ['--checkpoint', checkpoint, '--pubkey', testSigner.verifierKeys[0]];
  const args = ['--input', file, ...proof, '--rpc', `${network}=${chain.rpcUrl}`, '--json', json];
  const copy = await run(['--from', from, '--to', to, ...args], {});
  expect(copy.code).toBe(1);
  const digest = (JSON.parse(lines[at]!) as { stream: string }).stream;
  expect(exceptionsIn(report())).toEqual([`amount_mismatch ${digest}`, `on_chain_without_event ${stray}`]);
  expect(report().ledger.fault).toMatchObject({ seq: at + 1 });
});

test('a period without blocks, such as one of a wrong year, is refused with that reason', async () => {
  const { run, config } = await paid(chain);
  const ended = await run(['--from', '2001-01', '--to', '2001-02', '--config', config.file]);
  const stderr =
    'nothing was compared, and nothing was stored: no chain has a block in the period, and the ledger has nothing there. Is the year right?\n';
  expect({ ...ended, stderr: withoutProgress(ended.stderr) }).toMatchObject({ code: 2, stdout: '', stderr });
});

test('a source that cannot be read ends with exit code 2 and its error, and no report is stored', async () => {
  const { database, run, usual } = await paid(chain);
  const proxy = await startRpcProxy(chain.rpcUrl);
  proxy.lie = ({ method }) =>
    method === 'eth_getLogs'
      ? { error: { code: -32_000, message: 'pruned history unavailable' } }
      : undefined;
  const ended = await run([...usual, '--rpc', `${network}=${proxy.url}`]);
  expect(ended).toMatchObject({ code: 2, stdout: '' });
  expect(ended.stderr).toMatch(
    /refuses the transfers of the single block \d+: rpc_error: .*Nothing was stored/,
  );
  expect(await run([...usual.slice(0, -1), '/absent/report.json'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: '--json /absent/report.json cannot be written: its folder does not exist or is not writable\n',
  });
  expect(await stored(database)).toEqual([]);
});
