import { parseArgs } from 'node:util';
import { type Hex, isHex32 } from '../../../domain/values/primitives.ts';
import {
  type OperatorResolution,
  type OperatorResolutionResult,
  resolveSettlementByOperator,
} from '../../../jobs/resolve-settlement-by-operator.ts';
import { closeChains, openChains, readConfig } from '../../chains.ts';
import { withLedger } from '../../ledger.ts';
import { operatorNamed, operatorNameRule } from '../../operator-name.ts';
import { fail, say } from '../../terminal.ts';

const failures: Readonly<Record<Exclude<OperatorResolutionResult['kind'], 'recorded'>, string>> = {
  not_open: 'no settlement of that quote is open: `tollbook settlements` lists those that are',
  ambiguous: 'several payments of that quote are open: they have to be resolved by the gateway',
  too_young: 'its first settle may still be under way: ask again in a minute',
  contradicted: 'the chain says otherwise; nothing was recorded',
  chain_unavailable: 'the chain cannot be asked now; nothing was recorded',
  transfer_claimed: 'that transaction has paid for something else; nothing was recorded',
  superseded: 'something else was recorded meanwhile: look at it again',
};

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      paid: { type: 'string' },
      unpaid: { type: 'boolean', default: false },
      evidence: { type: 'string' },
      by: { type: 'string' },
      config: { type: 'string' },
    },
  });
  const digest = (positionals[0] ?? '').toLowerCase();
  const transaction = values.paid?.toLowerCase();
  const { evidence = '', by = '' } = values;
  const wrong = !isHex32(digest)
    ? 'which settlement? name its quote: 0x and 64 hexadecimal digits'
    : (transaction === undefined) !== values.unpaid
      ? 'say one of --paid TRANSACTION and --unpaid'
      : transaction !== undefined && !isHex32(transaction)
        ? 'a transaction is 0x and 64 hexadecimal digits'
        : !/^[ -~]{1,200}$/.test(evidence)
          ? '--evidence is what you know it from: 1 to 200 visible ASCII characters'
          : operatorNamed(by) === undefined
            ? operatorNameRule
            : undefined;
  if (wrong !== undefined || !isHex32(digest)) {
    fail(wrong ?? '');
    return 64;
  }
  const chains = openChains(values.config === undefined ? undefined : await readConfig(values.config));
  const resolution: OperatorResolution = {
    result:
      transaction === undefined ? { kind: 'unpaid' } : { kind: 'paid', transaction: transaction as Hex },
    evidence,
    operator: by,
  };
  try {
    const { kind } = await withLedger((ledger) =>
      resolveSettlementByOperator(ledger, digest, resolution, (network) => chains.get(network)),
    );
    if (kind !== 'recorded') {
      fail(failures[kind]);
      return 1;
    }
    const isPaid = resolution.result.kind === 'paid';
    say(isPaid ? 'Settled by your word; its call is on its way.' : 'Failed by your word.');
    return 0;
  } finally {
    await closeChains(chains);
  }
}
