import type { CostAnswer, CostRefusal, RecordedCost } from '../../payments/use-cases/costs/record-cost.ts';
import type { MissingCost } from '../use-cases/costs/record-missing.ts';
import { decimalText } from '../../base/values/entry.ts';
import { costWei } from '../../base/values/transaction-cost.ts';
import { nativeDecimals } from '../../base/values/native-coin.ts';
import {
  type Refused,
  refused,
  type TransferCost,
  type NoTransfers,
} from '../use-cases/refunds/final-transfers.ts';

/** Messages for a transaction whose transfers could not be read. */
export const chainMessages: Readonly<Record<NoTransfers, string>> = {
  network_unknown: 'no RPC of that network is configured: name one with --rpc or --config',
  wrong_chain: 'the RPC for that network serves another chain',
  chain_unavailable: 'the chain could not be reached; nothing was recorded',
  transaction_unknown: 'the chain has no such transaction',
  transaction_failed: 'that transaction failed: it moved nothing',
  not_final: 'that transaction is not final yet: try again in a few minutes',
};

/** Why a cost could not be recorded. */
export const costMessages: Readonly<Record<CostRefusal, string>> = {
  network_unknown: chainMessages.network_unknown,
  wrong_chain: chainMessages.wrong_chain,
  chain_unavailable: chainMessages.chain_unavailable,
  not_final: chainMessages.not_final,
  no_receipt: 'the chain has no receipt of that transaction: it does not know it, or no block has it yet',
  foreign_payer:
    'an account sent it that is not known as yours, so it cost you nothing; nothing was recorded: if it is yours, name it with --payer',
  superseded: 'another command was recorded meanwhile: try again',
};

/** The same, and why anchors could not be found. */
export const missingMessages: Readonly<Record<CostRefusal | 'search_failed', string>> = {
  ...costMessages,
  search_failed:
    'the chain did not name all of them; the costs of those before are recorded: try again, or name another node with --rpc',
};

type CostTerms = Pick<RecordedCost, 'gas_used' | 'gas_price_wei' | 'l1_fee_wei' | 'symbol'>;

/** `0.000052301000000000 ETH`, in the chain's own coin. */
export function costText(cost: CostTerms): string {
  return `${decimalText(costWei(cost), nativeDecimals)} ${cost.symbol}`;
}

/** What a command that recorded a transaction says of its cost. */
export function costLine({ network, transaction, purpose, answer }: TransferCost): string {
  if (answer.kind !== 'refused')
    return `Gas${answer.kind === 'repeated' ? ', recorded before' : ''}: ${costText(answer.cost)}, paid by ${answer.cost.payer}.`;
  const { code, detail = '' } = answer;
  const command = `tollbook costs record --network ${network} --tx ${transaction} --purpose ${purpose}`;
  return code === 'foreign_payer'
    ? `Gas: not recorded, because ${detail} sent it, which is not known as yours. If it is: \`${command} --payer ${detail}\`.`
    : `Gas: not recorded: ${costMessages[code]}. Record it with \`${command}\`.`;
}

/** What a recorded cost is. */
export function recordedLine({ kind, cost }: Exclude<CostAnswer, { kind: 'refused' }>): string {
  const words = `${costText(cost)} of gas (${cost.purpose}), paid by ${cost.payer}`;
  return kind === 'recorded' ? `Recorded: ${words}.` : `Recorded before: ${words}.`;
}

/** What became of a cost that was missing: a line, or why it could not be recorded. */
export function missingLine(
  missing: MissingCost,
): { readonly line: string } | (Refused<keyof typeof missingMessages> & { readonly subject: string }) {
  if ('unsearched' in missing) {
    const subject = `anchors in the contract ${missing.contract} on ${missing.network}`;
    return { ...refused('search_failed', missing.unsearched), subject };
  }
  const { network, transaction, purpose, answer } = missing;
  const subject = `transaction ${transaction} (${purpose}) on ${network}`;
  if (answer.kind === 'reversed') {
    const { operator, why } = answer.reversal;
    return { line: `Left out: ${subject}: ${operator} has reversed the record of its cost: ${why}.` };
  }
  if (answer.kind !== 'refused') return { line: `${recordedLine(answer).slice(0, -1)}, ${subject}.` };
  const { code, detail = '' } = answer;
  return code === 'foreign_payer'
    ? {
        line: `Left out: ${subject}: ${detail} sent it, which is not known as yours. If it is, name it with --payer.`,
      }
    : { ...answer, subject };
}
