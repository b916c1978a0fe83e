import type { TaxTerms } from '../../../base/values/accounting.ts';
import type { Commodity, Entry, Move } from '../../../base/values/entry.ts';
import type { Valuation } from '../../../audit/rules/bookkeeping/rates.ts';
import { customerOf, missingForTax, saleSign, taxIn, taxOf } from '../../../audit/rules/bookkeeping/tax.ts';
import { microsInCent, missingRate, roundTo, worthOn } from '../../../audit/rules/bookkeeping/worth.ts';

/** What one job or model was sold for, tax included; below 0 where more was given back. */
export interface InvoiceLine {
  /** `job 1/0`, or `chat` and the model. */
  readonly of: string;
  readonly sales: number;
  readonly taxKey: string | undefined;
  readonly gross: bigint;
}

/** The sales with one rate of tax. */
export interface InvoiceTax {
  readonly country: string;
  readonly rate: string;
  readonly gross: bigint;
  readonly tax: bigint;
}

/** The sales of a period to one customer, in units of 10^-`decimals` of one currency. */
export interface Invoice {
  readonly currency: string;
  readonly decimals: number;
  readonly lines: readonly InvoiceLine[];
  readonly taxes: readonly InvoiceTax[];
  readonly gross: bigint;
  readonly tax: bigint;
}

/** The sales of a customer so far. Take every entry of the period, in order. */
export class InvoiceFold {
  readonly #customer: string;
  readonly #terms: { readonly valuation: Valuation | undefined; readonly tax: TaxTerms | undefined };
  readonly #lines = new Map<
    string,
    { of: string; sales: number; taxKey: string | undefined; gross: bigint }
  >();
  readonly #missing = new Set<string>();
  #commodity: Commodity | undefined;

  constructor(
    customer: string,
    terms: { readonly valuation: Valuation | undefined; readonly tax: TaxTerms | undefined },
  ) {
    this.#customer = customer;
    this.#terms = terms;
  }

  take(entry: Entry): void {
    for (const move of entry.moves) {
      const sign = saleSign(entry, move);
      if (sign === 0 || customerOf(entry, move) !== this.#customer) continue;
      const amount = this.#amount(entry, move);
      const of = entry.payment
        ? `job ${entry.payment.serviceId}/${entry.payment.jobIndex}`
        : `chat ${entry.memo ?? ''}`.trimEnd();
      const taxKey = this.#taxKey(entry, move);
      const key = `${of}/${taxKey}`;
      const line = this.#lines.get(key) ?? { of, sales: 0, taxKey, gross: 0n };
      line.sales += sign;
      line.gross += BigInt(sign) * amount;
      this.#lines.set(key, line);
    }
  }

  /** The invoice; or everything that is missing for one. */
  finish():
    | { readonly kind: 'invoice'; readonly invoice: Invoice }
    | { readonly kind: 'missing'; readonly missing: readonly string[] } {
    if (this.#missing.size > 0) return { kind: 'missing', missing: [...this.#missing] };
    const { valuation } = this.#terms;
    // a currency has cents: parts of them are rounded once for each line
    const cent = valuation ? microsInCent : 1n;
    const lines = [...this.#lines.values()]
      .map((line) => ({ ...line, gross: roundTo(cent, line.gross) }))
      .toSorted((a, b) => (a.of < b.of ? -1 : 1));
    const gross = lines.reduce((sum, line) => sum + line.gross, 0n);
    if (gross <= 0n) return { kind: 'missing', missing: ['a sale in this period that was not given back'] };
    const byTax = Map.groupBy(lines, ({ taxKey }) => taxKey);
    const taxes = [...byTax].flatMap(([key, group]) => {
      if (key === undefined) return [];
      const [country = '', rate = ''] = key.split(' ');
      const sum = group.reduce((all, line) => all + line.gross, 0n);
      const part = taxIn(sum < 0n ? -sum : sum, rate);
      return [{ country, rate, gross: sum, tax: sum < 0n ? -part : part }];
    });
    const tax = taxes.reduce((sum, one) => sum + one.tax, 0n);
    const currency = valuation?.currency ?? this.#commodity?.name ?? '';
    const decimals = valuation ? 2 : (this.#commodity?.decimals ?? 0);
    return { kind: 'invoice', invoice: { currency, decimals, lines, taxes, gross, tax } };
  }

  #amount(entry: Entry, { atoms, commodity }: Move): bigint {
    const { valuation } = this.#terms;
    if (valuation) {
      const day = entry.recordedAt.slice(0, 10);
      const worth = worthOn(atoms, commodity, day, valuation);
      if (worth === undefined) this.#missing.add(missingRate(commodity, valuation.currency, day));
      return worth ?? 0n;
    }
    this.#commodity ??= commodity;
    if (commodity !== this.#commodity)
      this.#missing.add(`one currency for ${this.#commodity.name} and ${commodity.name}: give --rates`);
    return atoms;
  }

  #taxKey(entry: Entry, move: Move): string | undefined {
    const { tax: terms } = this.#terms;
    if (!terms) return undefined;
    const tax = taxOf(entry, move, terms);
    const missing = missingForTax(tax);
    if (missing !== undefined) this.#missing.add(missing);
    return tax.kind === 'taxed' ? `${tax.country} ${tax.rate}` : undefined;
  }
}
