import { transferMethods } from '../values/transfer-method.ts';
import { chainIdOf } from '../values/primitives.ts';
import type { AcceptedToken } from '../values/token.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import type { RootTable } from './root.ts';
import { readTables, type Table } from './table.ts';
import { readRateTerms, tokenRateShape } from './rates.ts';
import { address, markupBps, matching, network, oneOf, wholeNumber } from './values.ts';

const printable = matching(/^[\x20-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters');

/** The form of a symbol. */
export const symbolForm = /^[A-Za-z0-9._-]{1,16}$/;

export const tokenShape = {
  network: network.describe("The token's chain"),
  asset: address.describe("The token's contract"),
  symbol: matching(symbolForm, 'must be 1 to 16 of A-Z, a-z, 0-9, ".", "_" and "-"').describe(
    'The name that clients and runners see',
  ),
  decimals: wholeNumber(0, 36).describe('Of the token: 6 makes one atom a millionth'),
  pay_to: address.describe('Your address, which belongs to this ledger alone'),
  transfer_method: oneOf(transferMethods).default(transferMethods[0]).describe('How the money is moved'),
  peg: oneOf(['USD'])
    .optional()
    .describe(
      'The currency that the token is worth one unit of: it pays for what is priced in that currency',
    ),
  eip712_name: printable.describe('The EIP-712 name of the contract, which clients sign'),
  eip712_version: printable.describe('The EIP-712 version of the contract'),
  ...tokenRateShape,
  markup_bps: markupBps.optional().describe("The token's markup"),
} as const;

type TokenTable = Table<typeof tokenShape>;

/** Reads `[[accepted_tokens]]`. Returns the whole ones; what is wrong with the others is reported. */
export function readTokens(root: RootTable, isRequired: boolean, reading: Reading): AcceptedToken[] {
  const { report } = reading;
  const tables = readTables(tokenShape, root.values.acceptedTokens, ['accepted_tokens'], report);
  if (isRequired && tables.length === 0 && !isWrongKind(root)) {
    report.mistake(['accepted_tokens'], 'is missing: at least one token must be accepted');
  }
  checkPayees(tables, report);
  checkDuplicates(tables, report);
  checkSymbols(tables, report);
  checkRates(tables, root, report);
  return tables.flatMap((table) => toToken(table, root, reading) ?? []);
}

/** Already reported as not being an array. */
function isWrongKind(root: RootTable): boolean {
  return root.names('accepted_tokens') && !Array.isArray(root.values.acceptedTokens);
}

function checkPayees(tables: readonly TokenTable[], report: Report): void {
  for (const { at, values } of tables) {
    if (values.payTo !== undefined && values.payTo === values.asset) {
      report.mistake([...at, 'pay_to'], 'is the token itself: payments to it would be lost');
    }
  }
}

function checkDuplicates(tables: readonly TokenTable[], report: Report): void {
  const seen = new Map<string, number>();
  for (const [index, { at, values }] of tables.entries()) {
    if (values.network === undefined || values.asset === undefined) continue;
    const name = `${values.network}/${values.asset}`;
    const earlier = seen.get(name);
    if (earlier === undefined) seen.set(name, index);
    else report.mistake([...at, 'asset'], `repeats the network and asset of accepted_tokens[${earlier}]`);
  }
}

/** Runners and statements name a token by its symbol, which must therefore name one token of a network. */
function checkSymbols(tables: readonly TokenTable[], report: Report): void {
  const seen = new Map<string, number>();
  for (const [index, { at, values }] of tables.entries()) {
    if (values.network === undefined || values.symbol === undefined) continue;
    const name = `${values.network}/${values.symbol.toLowerCase()}`;
    const earlier = seen.get(name);
    if (earlier === undefined) seen.set(name, index);
    else if (tables[earlier]?.values.asset !== values.asset)
      report.mistake(
        [...at, 'symbol'],
        `is also the symbol of accepted_tokens[${earlier}] on this network: runners and statements could not tell them apart`,
      );
  }
}

function checkRates(tables: readonly TokenTable[], root: RootTable, report: Report): void {
  const without = tables.find(
    (table) => !table.names('rate_per_native_unit') && !table.names('rates') && !table.names('peg'),
  );
  if (without === undefined || root.names('rate_per_native_unit')) return;
  const token = `accepted_tokens[${String(without.at.at(-1))}]`;
  report.mistake(['rate_per_native_unit'], `is missing: ${token} has no rate`);
}

function toToken(table: TokenTable, root: RootTable, reading: Reading): AcceptedToken | undefined {
  const terms = readRateTerms(table, reading);
  const { whole } = table;
  const chainId = whole && chainIdOf(whole.network);
  const bps = whole?.markupBps ?? root.values.markupBps;
  const fixed = whole?.ratePerNativeUnit ?? root.values.ratePerNativeUnit;
  if (whole === undefined || chainId === undefined || bps === undefined || !(terms ?? fixed ?? whole.peg))
    return undefined;
  const {
    network: chain,
    asset,
    symbol,
    decimals,
    payTo,
    transferMethod,
    peg,
    eip712Name,
    eip712Version,
  } = whole;
  return {
    network: chain,
    chainId,
    asset,
    symbol,
    decimals,
    payTo,
    transferMethod,
    peg,
    eip712Name,
    eip712Version,
    ratePerNativeUnit: terms ? undefined : fixed,
    markupBps: bps,
    rateTerms: terms,
    fixedRateMaxAgeSecs: terms ? undefined : whole.rateMaxAgeSecs,
  };
}
