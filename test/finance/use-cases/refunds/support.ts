import { expect, onTestFinished } from 'vitest';
import { privateKeyToAddress } from 'viem/accounts';
import {
  type Chains,
  readMined,
  requireFinal,
} from '../../../../src/finance/use-cases/refunds/final-transfers.ts';
import { recordRefund, type RefundOrder } from '../../../../src/finance/use-cases/refunds/record-refund.ts';
import { recordSweep, type SweepOrder } from '../../../../src/finance/use-cases/refunds/record-sweep.ts';
import { devnetKeys, lowerCase } from '../../../../src/devnet/accounts.ts';
import { foldQuote } from '../../../../src/payments/rules/quote-state.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { createChain } from '../../../../src/payments/peers/chain/chain.ts';
import { writerRole } from '../../../../src/ledger/store/database.ts';
import { openLane } from '../../../../src/ledger/store/lane.ts';
import { readStream } from '../../../../src/ledger/store/streams.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import type { TestChain } from '../../../support/devnet.ts';
import { payTo, startTestGateway, type TestGatewayOptions } from '../../../support/gateway.ts';
import { allEvents } from '../../../support/invariants.ts';
import { transferToken } from '../../../support/onchain.ts';
import { payer } from '../../../support/payer.ts';
import { payByOption } from '../../../support/permit2.ts';
import { type Reaction, startTestRunner } from '../../../support/runner.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { askNode } from '../../../support/tokens.ts';
import { eventually } from '../../../support/wait.ts';

export const network = 'eip155:84532';
const job = '/x402/jobs/1/0';
export const price = 3_264_000n;
export const payerAddress = payer.address.toLowerCase() as Hex;
const clientError: Reaction = { status: 400, body: 'no such model' };

/** The chains that a use case asks, closed when the test ends. */
export function chainsAt(rpcUrl: string, chainId = 84_532): Chains {
  const chain = createChain({ chainId, rpcUrl, timeoutMs: 30_000 });
  onTestFinished(() => chain.close());
  return new Map([[network, chain]]);
}

/** A ledger as a command opens it. */
export function openLedger(database: TestDatabase) {
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close());
  return { pool: database.pool, db: database.db, lane };
}

/** A gateway whose runner takes no call, and how its payments are given back. */
export async function refunding(
  chain: TestChain,
  {
    react = () => clientError,
    ...options
  }: Partial<TestGatewayOptions> & { react?: Parameters<typeof startTestRunner>[0] } = {},
) {
  const database = await createDatabase();
  const runner = await startTestRunner(react);
  const gateway = await startTestGateway({ database, chain, runnerUrl: runner.url, ...options });
  const ledger = openLedger(database);
  const chains = chainsAt(chain.rpcUrl);
  const stateOf = async (digest: string): Promise<string> =>
    (await gateway.get(`/x402/receipts/${digest}`)).json.state;
  const record = (quoteDigest: Hex, transaction: Hex, change: Partial<RefundOrder> = {}, at = chains) =>
    recordRefund(
      ledger,
      { quoteDigest, transaction, paymentNonce: undefined, operator: 'ada', isGoodwill: false, ...change },
      at,
    );
  const sweep = (
    transaction: Hex,
    change: Partial<SweepOrder> = {},
    at = chains,
    accepted = [accepts(chain.token)],
  ) =>
    recordSweep(
      ledger,
      { network, transaction, operator: 'ada', isNoRefund: false, ...change },
      at,
      accepted,
    );
  /** Pays for a call and waits for its end. */
  const paid = async (state = 'dead_lettered', option = 0): Promise<Hex> => {
    const { status, json } = await payByOption(gateway, job, 'x', option);
    expect(status).toBe(202);
    await eventually(async () => expect(await stateOf(json.quote_digest)).toBe(state));
    return json.quote_digest as Hex;
  };
  /** Waits until a transaction is final; returns it. */
  const final = async (transaction: Hex): Promise<Hex> => {
    const mined = await eventually(async () => {
      const read = await readMined(chains, network, transaction);
      if (read.kind === 'refused') throw new Error(read.code);
      return read;
    });
    await eventually(async () => expect(await requireFinal(chains, network, mined)).toBeUndefined());
    return transaction;
  };
  return {
    database,
    gateway,
    ledger,
    chains,
    stateOf,
    record,
    sweep,
    paid,
    final,
    /** Pays for a call, and waits until it is a dead letter and its payment final: its refund may be sent. */
    async owed(option = 0) {
      const quoteDigest = await paid('dead_lettered', option);
      const known = foldQuote((await readStream(database.pool, quoteDigest)).events).payment;
      await final(known?.settled?.transaction as Hex);
      const of = { quoteDigest, paymentNonce: known?.payment.nonce as Hex, operator: 'ada' };
      return { ...of, callId: known?.call?.callId ?? 0 };
    },
    async typesOf(stream: string): Promise<string[]> {
      return (await allEvents(database.db))
        .filter((event) => event.stream === stream)
        .map(({ type }) => type);
    },
  };
}

/** A token as the configuration accepts it. */
const accepts = (asset: Hex) => ({ network, asset, symbol: 'USDC', decimals: 6, payTo }) as const;

/** Takes a call only when it is sent again. */
export const reluctant = ({ attempt }: { readonly attempt: number }): Reaction =>
  attempt === 1 ? clientError : { status: 200, body: 'done' };

/** The payee refunds a payment; options override every part. */
export async function giveBack(
  chain: TestChain,
  change: Partial<{ key: Hex; asset: Hex; to: Hex; amount: bigint; gas: bigint }> = {},
): Promise<Hex> {
  const money = { key: devnetKeys.payTo, asset: chain.token, to: payerAddress, amount: price, ...change };
  const { key, asset, amount, gas } = money;
  if (gas === undefined && asset === chain.token)
    await chain.mint(lowerCase(privateKeyToAddress(key)), amount);
  return transferToken(chain.rpcUrl, money);
}

/** A node that calls nothing final that is not by now. */
export async function chainsThatStandStill(rpcUrl: string): Promise<Chains> {
  const proxy = await startRpcProxy(rpcUrl);
  const result = await askNode(rpcUrl, 'eth_getBlockByNumber', ['finalized', false]);
  proxy.lie = ({ method, params }) =>
    method === 'eth_getBlockByNumber' && params[0] === 'finalized' ? { result } : undefined;
  return chainsAt(proxy.url);
}

/** How many transactions an account has sent: its next nonce, if none waits for a block. */
export async function transactionCount(rpcUrl: string, address: Hex): Promise<number> {
  return Number(await askNode(rpcUrl, 'eth_getTransactionCount', [address, 'latest']));
}
