import type { AstrayRecord } from '../use-cases/refunds/record-astray.ts';
import { moneyText } from './money-text.ts';

const words = {
  suspense: 'is in suspense',
  income: 'is kept as income',
  returned: 'was given back',
  own: "is the operator's own",
} as const;

/** What an operator recorded of a transfer that is no payment, as a sentence without its full stop. */
export function useText(record: AstrayRecord): string {
  const from = `from ${record.received_from} to ${record.pay_to}`;
  const by = record.returned ? ` by ${record.returned.transaction}` : '';
  return `${moneyText(record)} ${from} ${words[record.as]}${by}`;
}
