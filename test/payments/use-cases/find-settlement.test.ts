import { expect, test } from 'vitest';
import { foldQuote } from '../../../src/payments/rules/quote-state.ts';
import { paymentFromData } from '../../../src/payments/rules/payment.ts';
import { findSettlement } from '../../../src/payments/use-cases/find-settlement.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { chainsAt, network, refunding } from '../../finance/use-cases/refunds/support.ts';
import { useChain } from '../../support/devnet.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';

const chain = useChain();

test('a payment whose nonce is used is not void while a node does not show the log of that use', async () => {
  const { database, owed } = await refunding(chain);
  const { quoteDigest } = await owed();
  const { quote, payment: known } = foldQuote((await readStream(database.pool, quoteDigest)).events);
  const payment = paymentFromData(known!.payment);
  const proxy = await startRpcProxy(chain.rpcUrl);
  const node = chainsAt(proxy.url).get(network)!;
  const look = () => findSettlement(node, payment, [], quote!.issued_at);
  proxy.lie = ({ method }) => (method === 'eth_getLogs' ? { result: [] } : undefined);
  expect(await look()).toEqual({ kind: 'undecided', reason: 'transfer_not_found' });
  proxy.lie = () => undefined;
  expect(await look()).toMatchObject({ kind: 'paid', transaction: known?.settled?.transaction });
});
