import { accounts } from '../../rules/bookkeeping/account.ts';
import type { Balances, Commodity, Entry } from '../../../base/values/entry.ts';
import { type Rates, valueOf } from '../../rules/bookkeeping/rates.ts';
import { instantText, type Period } from '../../../base/values/period.ts';
import { ExportError } from './source.ts';

/**
 * What the conversions of a period gained or lost: the tokens that went into `Equity:Conversion`, at the rates of its last day, against
 * the credit that came out. After this entry the account is worth nothing at those rates. Undefined where that is so already.
 * @throws ExportError where a token that was converted has no rate in the currency of credit
 */
export function closeConversion(balances: Balances, { toMs }: Period, rates: Rates): Entry | undefined {
  const held = balances
    .list()
    .filter(({ account, atoms }) => account === accounts.conversion && atoms !== 0n);
  const currency = held.find(({ commodity }) => commodity.network === undefined)?.commodity;
  if (!currency) return undefined;
  const at = instantText(toMs - 1);
  const stated: string[] = [];
  const worth = held.reduce((sum, { commodity, atoms }) => {
    if (commodity === currency) return sum + atoms;
    const rate = rateOf(commodity, at.slice(0, 10), currency, rates);
    stated.push(`${commodity.name} ${rate.text}`);
    return sum + valueOf(atoms, commodity, rate);
  }, 0n);
  if (worth === 0n) return undefined;
  const { conversion, fx } = accounts;
  const sides = worth > 0n ? { debit: fx, credit: conversion } : { debit: conversion, credit: fx };
  return {
    seq: undefined,
    stream: undefined,
    event: 'closing',
    category: 'conversion_close',
    recordedAt: at,
    occurredAt: at,
    moves: [{ ...sides, commodity: currency, atoms: worth > 0n ? worth : -worth }],
    payment: undefined,
    accountName: undefined,
    quoteDigest: undefined,
    quoteSource: undefined,
    counterparty: undefined,
    transaction: undefined,
    block: undefined,
    logIndex: undefined,
    memo: stated.join(', '),
  };
}

function rateOf(commodity: Commodity, day: string, currency: Commodity, rates: Rates) {
  const rate = rates.on(day, commodity.name, currency.name);
  if (rate) return rate;
  throw new ExportError(
    `--rates has no rate of ${commodity.name} in ${currency.name} on ${day} or before: credit was bought with it, and the conversion is closed at that rate`,
  );
}
