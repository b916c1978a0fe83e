import type { TaxTerms } from '../../../base/values/accounting.ts';
import type { Category, Entry, Move } from '../../../base/values/entry.ts';

/** What the tax file says of one move. Tax is part of the price: `atoms` of it, below 0 where a sale is taken back. */
export type Tax =
  | { readonly kind: 'no_sale' }
  | { readonly kind: 'taxed'; readonly country: string; readonly rate: string; readonly atoms: bigint }
  | { readonly kind: 'no_country'; readonly customer: string }
  | { readonly kind: 'no_rate'; readonly country: string; readonly of: string };

/** Income that is not for a job or a completion. */
const otherIncome: ReadonlySet<Category> = new Set([
  'conversion_close',
  'credit_expiry',
  'suspense_income',
  'transfer_reversal',
]);

/** Whose move it is: prepaid credit is of its account, by name; anything else of the wallet that paid, or of the other party. */
export function customerOf(
  { payment, accountName, counterparty }: Entry,
  { debit, credit }: Pick<Move, 'debit' | 'credit'>,
): string | undefined {
  const isCredit = [debit, credit].some((account) => account.startsWith('Liabilities:PrepaidCredit:'));
  return isCredit ? (accountName ?? counterparty) : (payment?.payer ?? accountName ?? counterparty);
}

/** Whether a move adds to the income of sales (1), takes from it (-1), or neither (0). */
export function saleSign({ category }: Pick<Entry, 'category'>, { debit, credit }: Move): -1 | 0 | 1 {
  if (otherIncome.has(category)) return 0;
  const [isDebited, isCredited] = [debit, credit].map((account) => account.startsWith('Income:'));
  if (isDebited === isCredited) return 0;
  return isCredited ? 1 : -1;
}

/** The tax in a move. A country or a rate that is not stated is named, and never guessed. */
export function taxOf(entry: Entry, move: Move, terms: TaxTerms): Tax {
  const sign = saleSign(entry, move);
  if (sign === 0) return { kind: 'no_sale' };
  const customer = customerOf(entry, move);
  const country = terms.countries.get(customer ?? '') ?? terms.defaultCountry;
  if (country === undefined) return { kind: 'no_country', customer: customer ?? 'unknown' };
  const { payment } = entry;
  const of = payment ? `${payment.serviceId}/${payment.jobIndex}` : 'chat';
  const { rates } = terms;
  const rate = rates.get(`${country} ${of}`) ?? rates.get(country) ?? rates.get('*');
  if (rate === undefined) return { kind: 'no_rate', country, of };
  return { kind: 'taxed', country, rate, atoms: BigInt(sign) * taxIn(move.atoms, rate) };
}

/** What the tax file does not state, as what is missing; undefined where it states all that a move needs. */
export function missingForTax(tax: Tax): string | undefined {
  if (tax.kind === 'no_country') return `the country of customer ${tax.customer}`;
  return tax.kind === 'no_rate' ? `a rate of tax of ${tax.of} in ${tax.country}` : undefined;
}

/** The tax in a price that includes it, in the price's unit, rounded half up. `price` is 0 or above; `rate` percent. */
export function taxIn(price: bigint, rate: string): bigint {
  const [whole = '', part = ''] = rate.split('.');
  const hundred = 100n * 10n ** BigInt(part.length);
  const scaled = BigInt(whole + part);
  const divisor = hundred + scaled;
  return (2n * price * scaled + divisor) / (2n * divisor);
}
