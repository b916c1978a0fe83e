import { parseArgs } from 'node:util';
import {
  recordSweep,
  type Sweep,
  type SweepOrder,
  type SweepRefusal,
} from '../../../refunds/record-sweep.ts';
import { type Caip2, chainIdOf, isHex32 } from '../../../domain/values/primitives.ts';
import { closeChains, openChains, readConfig } from '../../chains.ts';
import { chainMessages } from '../../chain-messages.ts';
import { withLedger } from '../../ledger.ts';
import { moneyText } from '../../money-text.ts';
import { ArgumentError, readOperator, readRpcUrls, requireChains } from '../../arguments.ts';
import { fail, say } from '../../terminal.ts';

const messages: Readonly<Record<SweepRefusal, string>> = {
  ...chainMessages,
  no_sweep: 'that transaction transfers nothing from an address that receives payments',
  refund_due:
    'it transfers exactly the amount of a due refund to its payer; nothing was recorded: ' +
    'use `tollbook refunds record`, or --not-a-refund if it is none',
  transfer_claimed: 'all its transfers are already recorded for another purpose',
};

/** Exit code 0 also where the sweep was recorded before. */
export async function run(args: readonly string[]): Promise<number> {
  const request = readRequest(args);
  const config = request.config === undefined ? undefined : await readConfig(request.config);
  const chains = openChains(config, request.rpcUrls);
  try {
    const tokens = config?.jobs?.acceptedTokens ?? [];
    const answer = await withLedger((ledger) => recordSweep(ledger, request.order, chains, tokens));
    if (answer.kind === 'refused') {
      fail(messages[answer.code] + (answer.detail === undefined ? '' : ` (${answer.detail})`));
      return 1;
    }
    for (const sweep of answer.recorded) say(`Swept: ${moneyOf(sweep)}.`);
    for (const sweep of answer.repeated) say(`Recorded before: ${moneyOf(sweep)}.`);
    for (const { sweep, stream } of answer.skipped)
      say(`No sweep: ${moneyOf(sweep)} is recorded in ${stream}.`);
    return 0;
  } finally {
    await closeChains(chains);
  }
}

interface SweepRequest {
  readonly order: SweepOrder;
  readonly config: string | undefined;
  readonly rpcUrls: ReadonlyMap<string, string>;
}

function readRequest(args: readonly string[]): SweepRequest {
  const { values } = parseArgs({
    args: [...args],
    options: {
      network: { type: 'string', default: '' },
      tx: { type: 'string', default: '' },
      'not-a-refund': { type: 'boolean', default: false },
      by: { type: 'string' },
      config: { type: 'string' },
      rpc: { type: 'string', multiple: true, default: [] },
    },
  });
  const { network } = values;
  const transaction = values.tx.toLowerCase();
  const operator = readOperator(values.by);
  if (chainIdOf(network) === undefined)
    throw new ArgumentError('--network is the CAIP-2 name of the chain, such as eip155:8453');
  if (!isHex32(transaction))
    throw new ArgumentError('--tx is the transaction of the sweep: 0x and 64 hexadecimal digits');
  const rpcUrls = readRpcUrls(values.rpc);
  requireChains(values.config, rpcUrls);
  const order = { network: network as Caip2, transaction, operator, isNoRefund: values['not-a-refund'] };
  return { order, config: values.config, rpcUrls };
}

function moneyOf(sweep: Sweep): string {
  return `${moneyText(sweep)} from ${sweep.pay_to} to ${sweep.swept_to}`;
}
