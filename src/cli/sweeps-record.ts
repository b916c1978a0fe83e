import { parseArgs } from 'node:util';
import { recordSweep, type Sweep, type SweepRefusal } from '../audit/record-sweep.ts';
import { type Caip2, chainIdOf, type Hex, isHex32 } from '../domain/primitives.ts';
import { closeChains, openChains, readConfig } from './chains.ts';
import { chainWords } from './chain-words.ts';
import { withLedger } from './ledger.ts';
import { operatorNamed, operatorNameRule } from './operator-name.ts';
import { fail, say } from './terminal.ts';

const words: Readonly<Record<SweepRefusal, string>> = {
  ...chainWords,
  no_sweep: 'that transaction moves nothing away from an address that is paid to',
  refund_due:
    'it gives a payer exactly what is owed back, nothing was recorded: ' +
    'use `tollbook refunds record`, or say --not-a-refund',
  transfer_claimed: 'all that it moves is recorded as something else already',
};

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      network: { type: 'string', default: '' },
      tx: { type: 'string', default: '' },
      'not-a-refund': { type: 'boolean', default: false },
      by: { type: 'string' },
      config: { type: 'string' },
    },
  });
  const { network } = values;
  const transaction = values.tx.toLowerCase();
  const operator = operatorNamed(values.by);
  const wrong =
    chainIdOf(network) === undefined
      ? 'which chain? --network is its CAIP-2 name, such as eip155:8453'
      : !isHex32(transaction)
        ? 'which transaction? --tx is 0x and 64 hexadecimal digits'
        : operator === undefined
          ? operatorNameRule
          : values.config === undefined
            ? "--config names the gateway's configuration: its chains are asked"
            : undefined;
  if (wrong !== undefined || operator === undefined || values.config === undefined) {
    fail(wrong ?? '');
    return 64;
  }
  const order = {
    network: network as Caip2,
    transaction: transaction as Hex,
    operator,
    isNoRefund: values['not-a-refund'],
  };
  const config = await readConfig(values.config);
  const chains = openChains(config);
  try {
    const tokens = config.x402?.tokens ?? [];
    const answer = await withLedger((ledger) => recordSweep(ledger, order, chains, tokens));
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

function moneyOf({ amount, symbol, pay_to, swept_to }: Sweep): string {
  return `${amount} atoms of ${symbol} from ${pay_to} to ${swept_to}`;
}
