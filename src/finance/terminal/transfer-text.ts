import type { UnexplainedTransferRecord } from '../use-cases/refunds/record-unexplained-transfer.ts';
import { moneyText } from './money-text.ts';

const words = {
  suspense: 'is in suspense',
  income: 'is kept as income',
  returned: 'was given back',
  own: "is the operator's own",
} as const;

/** An operator's record of an unexplained transfer, as a sentence without its full stop. */
export function useText(record: UnexplainedTransferRecord): string {
  const from = `from ${record.received_from} to ${record.pay_to}`;
  const by = record.returned ? ` by ${record.returned.transaction}` : '';
  return `${moneyText(record)} ${from} ${words[record.as]}${by}`;
}
