import { describe, expect, onTestFinished, test } from 'vitest';
import { reconcile, type ReconcileOptions } from '../../../../src/finance/use-cases/reconcile/reconcile.ts';
import { ledgerInDatabase } from '../../../../src/finance/use-cases/reconcile/ledger-source.ts';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import { testToken } from '../../../../src/devnet/contracts.ts';
import { reportText } from '../../../../src/finance/rules/reconcile/report.ts';
import { zeroAddress } from '../../../../src/payments/rules/quote.ts';
import { createScanner } from '../../../../src/payments/peers/chain/transfer-scan.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { testVerifier } from '../../../support/log.ts';
import { sendInLongTransaction } from '../../../support/onchain.ts';
import { endOfPeriod, exceptionsIn, itemsOf, paid } from '../../../support/reconcile.ts';
import { type Lie, startRpcProxy } from '../../../support/rpc-proxy.ts';
import { sendTokens, strewDust } from '../../../support/tokens.ts';

const chain = useChain();
const network = 'eip155:84532';

interface Books {
  readonly database: TestDatabase;
  readonly from: string;
  readonly to: string;
}

async function optionsOf({ database, from, to }: Books, rpcUrl = chain.rpcUrl): Promise<ReconcileOptions> {
  const scanner = createScanner({ network, chainId: 84_532, rpcUrl, timeoutMs: 30_000 });
  onTestFinished(() => scanner.close());
  return {
    period: { fromMs: Date.parse(from), toMs: Date.parse(to) },
    source: await ledgerInDatabase(database.pool, testVerifier, undefined),
    chains: new Map([[network, scanner]]),
    accepted: [],
    pinned: new Map(),
    twice: false,
    resumeFile: undefined,
    onProgress: () => {},
  };
}

const wrongChain: Lie = ({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : undefined);
const pruned: Lie = ({ method }) =>
  method === 'eth_getLogs' ? { error: { code: -32_000, message: 'pruned history unavailable' } } : undefined;
const silent: Lie = ({ method }) => (method === 'eth_getLogs' ? { result: [] } : undefined);
const silentAboutPeriods: Lie = (question) =>
  JSON.stringify(question.params).includes('fromBlock') ? silent(question) : undefined;
const blockAsked = ({ method, params }: Parameters<Lie>[0]): string | undefined =>
  method === 'eth_call' ? ((params[1] as { blockHash?: string }).blockHash ?? undefined) : undefined;
const noState = { error: { code: -32_000, message: 'missing trie node' } };
const withoutState: Lie = (question) => (blockAsked(question) === undefined ? undefined : noState);
const silentWithoutState: Lie = (question) => silent(question) ?? withoutState(question);
const contradictory: Lie = (question) => silentAboutPeriods(question) ?? withoutState(question);
const silentAltogether: Lie = (question) =>
  silentWithoutState(question) ??
  (question.method === 'eth_getTransactionByHash' ? { result: null } : undefined);

describe('a reconciliation of six payments', () => {
  test('names the fault of an unreliable node, each with its own code and message', async () => {
    const books = await paid(chain);
    const proxy = await startRpcProxy(chain.rpcUrl);
    const cases: [Lie, string, RegExp][] = [
      [wrongChain, 'wrong_chain', /serves another chain/],
      [pruned, 'logs_refused', /refuses the transfers of the single block \d+: rpc_error: pruned/],
      [silent, 'logs_incomplete', /but its balance changed by 9792000: the node lacks logs/],
      [
        contradictory,
        'logs_incomplete',
        /shows the transfer of 0x\w+ among the logs of block \d+, but its logs of the period lack it/,
      ],
      [silentWithoutState, 'logs_incomplete', /has that very block, but not that transfer/],
      [silentAltogether, 'logs_incomplete', /has that very block, but not that transfer/],
    ];
    for (const [lie, code, message] of cases) {
      proxy.lie = lie;
      await expect(reconcile(await optionsOf(books, proxy.url))).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
    }
    const nowhere = await optionsOf(books, 'http://127.0.0.1:9');
    await expect(reconcile(nowhere)).rejects.toMatchObject({ code: 'rpc_unavailable' });
    const usual = await optionsOf(books);
    const unknown = { ...usual, chains: new Map() };
    await expect(reconcile(unknown)).rejects.toMatchObject({ code: 'no_rpc' });
    const early = { ...usual, pinned: new Map([[network, 99_999_999n]]) };
    await expect(reconcile(early)).rejects.toMatchObject({ code: 'block_not_final' });
    await expect(ledgerInDatabase(books.database.pool, testVerifier, 999_999)).rejects.toMatchObject({
      code: 'no_checkpoint',
    });
  });

  test('computes balances back from a later block where the node lacks the state of old blocks, or reports them as unknown', async () => {
    const books = await paid(chain);
    const whole = await reconcile(await optionsOf(books));
    const proxy = await startRpcProxy(chain.rpcUrl);
    const end = whole.networks[0]?.to_hash;
    const at = (side: 'opening' | 'closing', how: string) =>
      whole.accounts.map((account) => ({ atoms: account[side].atoms, how }));
    const seen = new Set<string>();
    /** Of the balances that are asked for, the opening and the closing of each account come first. */
    const firstTwo: Lie = (question) => {
      const hash = blockAsked(question);
      if (hash !== undefined && seen.size < 2) seen.add(hash);
      return hash !== undefined && seen.has(hash) ? noState : undefined;
    };
    const onlyEnd: Lie = (question) => (blockAsked(question) === end ? undefined : withoutState(question));
    const cases = [
      [onlyEnd, at('opening', 'computed'), at('closing', 'chain')],
      [firstTwo, at('opening', 'computed'), at('closing', 'computed')],
      [
        withoutState,
        whole.accounts.map(() => ({ atoms: null, how: 'no_archive_state' })),
        whole.accounts.map(() => ({ atoms: null, how: 'no_archive_state' })),
      ],
    ] as const;
    for (const [lie, opening, closing] of cases) {
      proxy.lie = lie;
      const { accounts, networks, classes } = await reconcile(await optionsOf(books, proxy.url));
      expect(accounts.map((account) => account.opening)).toEqual(opening);
      expect(accounts.map((account) => account.closing)).toEqual(closing);
      expect(networks).toMatchObject([{ completeness: 'sample' }]);
      expect(classes).toEqual(whole.classes);
    }
    proxy.lie = withoutState;
    const twice = await reconcile({ ...(await optionsOf(books, proxy.url)), twice: true });
    expect(twice.networks).toMatchObject([{ completeness: 'two_passes' }]);
  });

  test('that gives little at a time, or a file to continue from: the report is the same to the byte', async () => {
    const books = await paid(chain);
    const proxy = await startRpcProxy(chain.rpcUrl);
    const text = reportText(await reconcile(await optionsOf(books)));
    proxy.lie = ({ method, params }) => {
      const { fromBlock, toBlock } = (params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
      const isWide = BigInt(toBlock ?? 0) - BigInt(fromBlock ?? 0) > 1n;
      return method === 'eth_getLogs' && isWide
        ? { error: { code: -32_602, message: 'too wide' } }
        : undefined;
    };
    expect(reportText(await reconcile(await optionsOf(books, proxy.url)))).toBe(text);
  });
});

test('a token with other decimals than were said is a break', async () => {
  const books = await paid(chain);
  const usual = await optionsOf(books);
  const said = { network, asset: chain.token, symbol: 'USDC', decimals: 18, payTo } as const;
  const report = await reconcile({ ...usual, accepted: [said] });
  expect(report).toMatchObject({ result: 'breaks', breaks: 1 });
  expect(itemsOf(report, 'token_decimals_differ')).toEqual([
    {
      of: 'token',
      network,
      asset: chain.token,
      decimals: 18,
      chain_decimals: 6,
      break_id: expect.any(String) as string,
    },
  ]);
});

test('an accepted token that is not in the ledger is reconciled too', async () => {
  const database = await createDatabase();
  const from = new Date(Date.now() - 2_000).toISOString();
  const [hash] = await sendTokens(chain.rpcUrl, devnetKeys.payer, chain.token, [
    { to: devnetAddress('spare'), atoms: 7n },
  ]);
  const to = await endOfPeriod(chain.rpcUrl);
  const usual = await optionsOf({ database, from, to }).catch((error: unknown) => error);
  expect(usual).toMatchObject({ code: 'no_checkpoint' });
  const scanner = createScanner({ network, chainId: 84_532, rpcUrl: chain.rpcUrl, timeoutMs: 30_000 });
  onTestFinished(() => scanner.close());
  const accepted = [
    { network, asset: chain.token, symbol: 'USDC', decimals: 6, payTo: devnetAddress('spare') },
  ] as const;
  const report = await reconcile({
    period: { fromMs: Date.parse(from), toMs: Date.parse(to) },
    source: await ledgerInDatabase(database.pool, undefined, undefined),
    chains: new Map([[network, scanner]]),
    accepted,
    pinned: new Map(),
    twice: false,
    resumeFile: undefined,
    onProgress: () => {},
  });
  expect(exceptionsIn(report)).toEqual([`on_chain_without_event ${hash}`]);
  expect(report.ledger).toMatchObject({ size: 0, checkpoint: null });
});

test('dust by the hundreds leaves a report that can be read, and every atom of it is found', async () => {
  const books = await paid(chain);
  await strewDust(chain.rpcUrl, devnetKeys.secondSpare, chain.token, payTo, 250);
  const to = await endOfPeriod(chain.rpcUrl);
  const options = await optionsOf({ ...books, to });
  const report = await reconcile({ ...options, listed: 100 });
  const found = report.classes.on_chain_without_event;
  expect(found).toMatchObject({ kind: 'break', count: 250 });
  expect(found?.items).toHaveLength(100);
  expect(found?.groups).toMatchObject([{ count: 150, atoms: '150', counterparty: zeroAddress }]);
  expect(report.classes.matched?.count).toBe(6);
  const usdc = report.accounts.find(({ asset }) => asset === chain.token);
  expect(usdc?.movements).toContainEqual({
    class: 'on_chain_without_event',
    count: 250,
    in: '250',
    out: '0',
  });
});

test('dust in a transaction with more logs than anybody would read is a break, and hides nothing else', async () => {
  const books = await paid(chain);
  const transaction = await sendInLongTransaction(chain.rpcUrl, {
    address: chain.token,
    artifact: testToken,
    functionName: 'mint',
    args: [payTo, 1n],
  });
  const to = await endOfPeriod(chain.rpcUrl);
  const report = await reconcile(await optionsOf({ ...books, to }));
  expect(exceptionsIn(report)).toEqual([`on_chain_without_event ${transaction}`]);
  expect(report.classes.matched?.count).toBe(6);
});
