import type { EventData } from '../../ledger/rules/event.ts';
import type { SignedPaymentData } from '../../ledger/rules/payment-events.ts';
import { fullOptions, optionFromJson, optionHash } from './quote.ts';

/** The recorded ways to pay a quote: in full, or by its hash if the gateway did not know one. */
export type RecordedOptions = EventData<'quote_issued'>['options'];

/** What a payment has in common with the option that it pays, in the order in which a difference is named. */
const termNames = [
  'network',
  'asset',
  'pay_to',
  'amount',
  'decimals',
  'symbol',
  'transfer_method',
  'eip712_name',
  'eip712_version',
  'submitter',
] as const;

/**
 * The term in which a payment differs from the option of its quote that is nearest to it; undefined if it is one of them. The gateway
 * starts no other payment, so that a difference shows an edited event.
 */
export function termsDiffer(options: RecordedOptions, payment: SignedPaymentData): string | undefined {
  const full = fullOptions({ options });
  const [nearest] = full
    .map((option) => termNames.filter((name) => option[name] !== payment[name]))
    .toSorted((a, b) => a.length - b.length);
  const differing = nearest ? nearest[0] : 'options';
  if (differing === undefined || full.length === options.length) return differing;
  // the hash of an option that sells credit is also of the credit, which the payment does not name
  if (full.some(({ credit_micros: micros }) => micros !== undefined)) return undefined;
  return options.includes(optionHash(optionFromJson(termsOf(payment)))) ? undefined : differing;
}

function termsOf(payment: SignedPaymentData) {
  const { network, transfer_method, asset, symbol, decimals, amount, pay_to } = payment;
  const { eip712_name, eip712_version, submitter } = payment;
  const terms = { network, transfer_method, asset, symbol, decimals, amount, pay_to };
  return { ...terms, eip712_name, eip712_version, submitter };
}
