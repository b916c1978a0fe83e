import type { Accounting, DatevTerms, ImportTerms, TaxTerms } from '../values/accounting.ts';
import { parseAddress } from '../values/primitives.ts';
import { readAccountMap } from './account-map.ts';
import { ConfigError, createReport, type Findings, type Report } from './mistakes.ts';
import { readToml } from './toml-source.ts';

type Table = Readonly<Record<string, unknown>>;

/**
 * Reads a file of accounts: a TOML table for each account; `[import]`, for accounting programs; `[tax]`, `[tax.rates]` and
 * `[customers]`.
 * @throws ConfigError with every mistake, its line and its path
 */
export function readAccounting(text: string, file: string): Accounting {
  const toml = readToml(text, file);
  const findings: Findings = { mistakes: [], warnings: [] };
  const report = createReport(toml, findings);
  const { import: given, tax, customers, ...accounts } = toml.root as Table;
  const accounting = {
    accountMap: readAccountMap(accounts, report),
    importTerms: readImport(readTable(given, 'import', report), report),
    tax: readTax(readTable(tax, 'tax', report), readTable(customers, 'customers', report), report),
  };
  if (findings.mistakes.length > 0) throw new ConfigError(findings.mistakes);
  return accounting;
}

function readTable(value: unknown, name: string, report: Report): Table | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Table;
  report.mistake([name], 'must be a table');
  return undefined;
}

const importKeys = ['currency', 'each', 'xero_tax_rate', 'datev'] as const;
const datevKeys = ['consultant', 'client', 'account_digits', 'year_from_month', 'chart'] as const;

function readImport(table: Table | undefined, report: Report): ImportTerms | undefined {
  if (!table) return undefined;
  refuseOthers(table, ['import'], importKeys, report);
  const textOf = textReader(table, ['import'], report);
  const each = textOf('each', /^(?:day|month)$/, 'must be "day" or "month"');
  if (table['currency'] === undefined) report.mistake(['import'], 'has no currency, such as "EUR"');
  const { datev } = table;
  return {
    currency: textOf('currency', /^[A-Z]{3}$/, 'must be three capitals, such as "EUR"') ?? '',
    each: each === 'month' ? 'month' : 'day',
    xeroTaxRate: textOf(
      'xero_tax_rate',
      /^[^"\p{C}]{1,50}$/u,
      'must be the name of a tax rate, such as "Tax Exempt"',
    ),
    datev: datev === undefined ? undefined : readDatev(datev, report),
  };
}

/** Reads texts of a table; undefined where one is absent, or after a report. */
function textReader(table: Table, path: readonly string[], report: Report) {
  return (key: string, form: RegExp, message: string): string | undefined => {
    const value = table[key];
    if (value === undefined) return undefined;
    if (typeof value === 'string' && form.test(value)) return value;
    report.mistake([...path, key], message);
    return undefined;
  };
}

function readDatev(value: unknown, report: Report): DatevTerms | undefined {
  const table = readTable(value, 'import.datev', report);
  if (!table) return undefined;
  refuseOthers(table, ['import', 'datev'], datevKeys, report);
  const whole = (key: (typeof datevKeys)[number], least: number, most: number, fallback?: bigint): number => {
    const given = table[key] ?? fallback;
    if (typeof given === 'bigint' && given >= least && given <= most) return Number(given);
    report.mistake(['import', 'datev', key], `must be a whole number from ${least} to ${most}`);
    return least;
  };
  const textOf = textReader(table, ['import', 'datev'], report);
  return {
    consultant: whole('consultant', 1_001, 9_999_999),
    client: whole('client', 1, 99_999),
    accountDigits: whole('account_digits', 4, 8, 4n),
    yearFromMonth: whole('year_from_month', 1, 12, 1n),
    chart: textOf('chart', /^\d\d$/, 'must be two digits, such as "03" for SKR03'),
  };
}

const country = /^[A-Z]{2}$/;
const rateKey = /^(?:\*|[A-Z]{2}(?: (?:chat|\d{1,15}\/\d{1,9}))?)$/;
const percent = /^(?:0|[1-9]\d?)(?:\.\d{1,4})?$/;

function readTax(
  table: Table | undefined,
  customers: Table | undefined,
  report: Report,
): TaxTerms | undefined {
  if (!table) {
    if (customers) report.mistake(['customers'], 'would be ignored: there is no [tax.rates]');
    return undefined;
  }
  refuseOthers(table, ['tax'], ['default_country', 'rates'], report);
  const rates = new Map<string, string>();
  const given = Object.entries(readTable(table['rates'], 'tax.rates', report) ?? {});
  for (const [key, rate] of given) {
    const text = typeof rate === 'bigint' ? String(rate) : rate;
    if (!rateKey.test(key))
      report.mistake(
        ['tax', 'rates', key],
        'is not a country such as "DE", a country and a job such as "DE 2/0" or "DE chat", or "*" for all others',
      );
    else if (typeof text !== 'string' || !percent.test(text))
      report.mistake(['tax', 'rates', key], 'must be percent below 100, such as "19" or "7.5"');
    else rates.set(key, text);
  }
  if (given.length === 0) report.mistake(['tax'], 'has no rate: write them in [tax.rates]');
  const countries = new Map<string, string>();
  for (const [customer, code] of Object.entries(customers ?? {})) {
    if (typeof code === 'string' && country.test(code))
      countries.set(parseAddress(customer) ?? customer, code);
    else report.mistake(['customers', customer], 'must be the code of a country, such as "DE"');
  }
  const defaultCountry = textReader(table, ['tax'], report)(
    'default_country',
    country,
    'must be the code of a country, such as "DE"',
  );
  return { defaultCountry, rates, countries };
}

function refuseOthers(table: Table, path: readonly string[], keys: readonly string[], report: Report): void {
  for (const key of Object.keys(table))
    if (!keys.includes(key)) report.mistake([...path, key], `is unknown: there are ${keys.join(', ')}`);
}
