import { type TokenPresetName, tokenPresets } from './presets.ts';
import { exactMethods } from '../values/transfer-method.ts';
import { chainIdOf } from '../values/primitives.ts';
import type { AcceptedToken } from '../values/token.ts';
import type { Reading } from './reading.ts';
import type { Report } from './mistakes.ts';
import type { RootTable } from './root.ts';
import { camelCase, isTable, pick, readTables, type Table } from './table.ts';
import { readRateTerms, tokenRateShape } from './rates.ts';
import { address, markupBps, matching, network, oneOf, wholeNumber } from './values.ts';

const printable = matching(/^[\x20-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters');

/** The form of a symbol. */
export const symbolForm = /^[A-Za-z0-9._-]{1,16}$/;

/** The keys that are about the token alone. */
const ownShape = {
  network: network.describe('Its chain'),
  asset: address.describe('Its contract'),
  symbol: matching(symbolForm, 'must be 1 to 16 of A-Z, a-z, 0-9, ".", "_" and "-"').describe(
    'Its name for clients and runners',
  ),
  decimals: wholeNumber(0, 36).describe('6: an atom is a millionth'),
  pay_to: address.describe('Your address, which belongs to this ledger alone'),
  transfer_method: oneOf(exactMethods)
    .default(exactMethods[0])
    .describe('How money moves: by a transfer that the token takes signed, or by Permit2, for any ERC-20'),
  peg: oneOf(['USD'])
    .optional()
    .describe('The token is worth one unit of this currency, and pays for prices in it'),
  eip712_name: printable
    .optional()
    .describe('EIP-712 name of the contract, which clients sign. For permit2, only if it has EIP-2612'),
  eip712_version: printable.optional().describe('Its EIP-712 version'),
} as const;

const presetNames = Object.keys(tokenPresets) as [TokenPresetName, ...TokenPresetName[]];

export const tokenShape = {
  preset: oneOf(presetNames)
    .optional()
    .describe(
      'Says all of the token but `pay_to`: network, contract, symbol, decimals, peg and EIP-712 domain',
    ),
  ...ownShape,
  ...tokenRateShape,
  markup_bps: markupBps.optional().describe('Its markup'),
} as const;

type TokenTable = Table<typeof tokenShape>;

/** Reads `[[accepted_tokens]]`. Returns the whole ones; what is wrong with the others is reported. */
export function readTokens(root: RootTable, isRequired: boolean, reading: Reading): AcceptedToken[] {
  const { report } = reading;
  const given = withPresets(root.values.acceptedTokens, report);
  const tables = readTables(tokenShape, given, ['accepted_tokens'], report);
  if (isRequired && tables.length === 0 && !isWrongKind(root)) {
    report.mistake(['accepted_tokens'], 'is missing: at least one token must be accepted');
  }
  checkPayees(tables, report);
  checkDuplicates(tables, report);
  checkSymbols(tables, report);
  checkDomains(tables, report);
  checkRates(tables, root, report);
  return tables.flatMap((table) => toToken(table, root, reading) ?? []);
}

const presetKeys = Object.keys(ownShape).filter((key) => camelCase(key) in tokenPresets['base/USDC']);

/** The tables with the keys that their presets stand for. */
function withPresets(raw: unknown, report: Report): unknown {
  if (!Array.isArray(raw)) return raw;
  return raw.map((table: unknown, index) => {
    const name = isTable(table) ? table['preset'] : undefined;
    const preset = presetNames.find((known) => known === name);
    if (!isTable(table) || preset === undefined) return table;
    for (const key of presetKeys.filter((one) => table[one] !== undefined))
      report.mistake(['accepted_tokens', index, key], `is what preset says: leave out one of the two`);
    const { decimals, ...texts } = tokenPresets[preset];
    const known: Readonly<Record<string, unknown>> = { ...texts, decimals: BigInt(decimals) };
    return { ...Object.fromEntries(presetKeys.map((key) => [key, known[camelCase(key)]])), ...table };
  });
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

/** A token that takes signed transfers has a domain, which clients sign for; of any other it is known as a whole, or not at all. */
function checkDomains(tables: readonly TokenTable[], report: Report): void {
  for (const { at, values, names } of tables) {
    const isNeeded = values.transferMethod === 'eip3009' || names('eip712_name') || names('eip712_version');
    for (const key of ['eip712_name', 'eip712_version'] as const)
      if (isNeeded && !names(key)) report.mistake([...at, key], 'is missing');
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
  const { eip712Name = '', eip712Version = '' } = whole;
  return {
    ...pick(ownShape, whole),
    eip712Name,
    eip712Version,
    chainId,
    ratePerNativeUnit: terms ? undefined : fixed,
    markupBps: bps,
    rateTerms: terms,
    fixedRateMaxAgeSecs: terms ? undefined : whole.rateMaxAgeSecs,
  };
}
