import { parseArgs } from 'node:util';
import {
  recordSweep,
  type Sweep,
  type SweepOrder,
  type SweepRefusal,
} from '../../../refunds/record-sweep.ts';
import { type Caip2, chainIdOf, isHex32 } from '../../../domain/values/primitives.ts';
import { closeChains, openChains, readConfig } from '../../chains.ts';
import { chainWords } from '../../chain-words.ts';
import { withLedger } from '../../ledger.ts';
import { moneyText } from '../../money-text.ts';
import { ArgumentError, readRpcUrls, requireChains } from '../../network-pairs.ts';
import { operatorNamed, operatorNameRule } from '../../operator-name.ts';
import { fail, say } from '../../terminal.ts';

const words: Readonly<Record<SweepRefusal, string>> = {
  ...chainWords,
  no_sweep: 'that transaction moves nothing away from an address that is paid to',
  refund_due:
    'it gives a payer exactly what is owed back, nothing was recorded: ' +
    'use `tollbook refunds record`, or say --not-a-refund',
  transfer_claimed: 'all that it moves is recorded as something else already',
};

/** Exit code 0 where it is recorded, now or before; 1 where it is refused, 64 for wrong arguments. */
export async function run(args: readonly string[]): Promise<number> {
  const asked = readAsked(args);
  const config = asked.config === undefined ? undefined : await readConfig(asked.config);
  const chains = openChains(config, asked.rpcUrls);
  try {
    const tokens = config?.jobs?.acceptedTokens ?? [];
    const answer = await withLedger((ledger) => recordSweep(ledger, asked.order, chains, tokens));
    if (answer.kind === 'refused') {
      fail(words[answer.code] + (answer.detail === undefined ? '' : ` (${answer.detail})`));
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

interface Asked {
  readonly order: SweepOrder;
  readonly config: string | undefined;
  readonly rpcUrls: ReadonlyMap<string, string>;
}

function readAsked(args: readonly string[]): Asked {
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
  const operator = operatorNamed(values.by);
  if (chainIdOf(network) === undefined)
    throw new ArgumentError('which chain? --network is its CAIP-2 name, such as eip155:8453');
  if (!isHex32(transaction))
    throw new ArgumentError('which transaction? --tx is 0x and 64 hexadecimal digits');
  if (operator === undefined) throw new ArgumentError(operatorNameRule);
  const rpcUrls = readRpcUrls(values.rpc);
  requireChains(values.config, rpcUrls);
  const order = { network: network as Caip2, transaction, operator, isNoRefund: values['not-a-refund'] };
  return { order, config: values.config, rpcUrls };
}

function moneyOf(sweep: Sweep): string {
  return `${moneyText(sweep)} from ${sweep.pay_to} to ${sweep.swept_to}`;
}
