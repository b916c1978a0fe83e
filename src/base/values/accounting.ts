import type { AccountMap } from './account-map.ts';

/** How an accounting program takes the books of a period. */
export interface ImportTerms {
  /** The currency that the accounting program keeps, such as `EUR`. */
  readonly currency: string;
  /** What one journal sums up. */
  readonly each: 'day' | 'month';
  /** Xero's name of the tax rate of a line without tax. */
  readonly xeroTaxRate: string | undefined;
  readonly datev: DatevTerms | undefined;
}

/** What the header of a DATEV batch says. */
export interface DatevTerms {
  /** The number of the tax adviser (Beraternummer). */
  readonly consultant: number;
  /** The number of the client at the adviser (Mandantennummer). */
  readonly client: number;
  /** The digits of an account (Sachkontenlänge). */
  readonly accountDigits: number;
  /** The month, from 1, with which the fiscal year begins (Wirtschaftsjahr). */
  readonly yearFromMonth: number;
  /** `03` or `04`: the chart of accounts (SKR); undefined if it is another one. */
  readonly chart: string | undefined;
}

/** Tax that prices include, by the customer's country and the job. */
export interface TaxTerms {
  /** Of customers whose country is not known; undefined if they are reported instead. */
  readonly defaultCountry: string | undefined;
  /** Percent as given, such as `19` or `7.5`, by `DE`, `DE 2/0` (a job), `DE chat`, or `*` for other countries. */
  readonly rates: ReadonlyMap<string, string>;
  /** ISO 3166 codes by customer: a wallet in lower case, or the name of a credit account. */
  readonly countries: ReadonlyMap<string, string>;
}

/** What a file of `--accounts` says. */
export interface Accounting {
  readonly accountMap: AccountMap;
  readonly importTerms: ImportTerms | undefined;
  readonly tax: TaxTerms | undefined;
}
