import { createHash } from 'node:crypto';
import type { CostPurpose } from '../../../base/values/transaction-cost.ts';
import type { Commodity } from '../../../base/values/entry.ts';

/**
 * The chart of accounts. Names are valid in beancount and hledger: parts begin with a capital or a digit, and hold letters,
 * digits and hyphens.
 */
export const accounts = {
  /** Paid, and not yet delivered. */
  undelivered: 'Liabilities:Undelivered',
  /** Paid, and never delivered. */
  refundsDue: 'Liabilities:RefundsDue',
  /** Came without a payment; its owner is not known yet. */
  suspense: 'Liabilities:Suspense',
  /** Credit that customers have not used, by its origin. */
  grantedCredit: 'Liabilities:PrepaidCredit:Granted',
  boughtCredit: 'Liabilities:PrepaidCredit:Bought',
  /** Tokens converted to credit, in both commodities. */
  conversion: 'Equity:Conversion',
  /** The other side of the balances before a period, with all earlier income and expenses. */
  opening: 'Equity:Opening',
  /** Against income: delivered and refunded. */
  refunds: 'Income:Refunds',
  breakage: 'Income:Breakage',
  /** What conversions of a period gained or lost, at the rates of its end. */
  fx: 'Income:FX',
  /** Came without a payment, and is kept. */
  unattributed: 'Income:Unattributed',
  /** Spends carry no model's name. */
  spends: 'Income:Chat:SpendAuthorizations',
  /** Credit granted without payment, less its expired part. */
  creditGrants: 'Expenses:CreditGrants:Given',
  /** Against that expense: granted credit that was used. It is not income. */
  usedGrants: 'Expenses:CreditGrants:Used',
  /** Refunded, and the payment itself turned out not to stand. */
  lostRefunds: 'Expenses:LostRefunds',
  /** Credit that was used before its payment turned out not to stand. */
  lostTopUps: 'Expenses:LostTopUps',
  lostSpends: 'Expenses:LostSpends',
} as const;

/** The tokens at an address of the operator. */
export function chainAccount(token: Commodity, address: string): string {
  return `Assets:Chain:${tokenPart(token)}:${shortAddress(address)}`;
}

/** Tokens at an address that only a facilitator reported. */
export function unconfirmedAccount(token: Commodity, address: string): string {
  return `Assets:Unconfirmed:${tokenPart(token)}:${shortAddress(address)}`;
}

/** The operator's tokens at an address other than a payee. */
export function treasuryAccount(token: Commodity, address: string): string {
  return `Assets:Treasury:${tokenPart(token)}:${shortAddress(address)}`;
}

/** The chain's own coin that an address of the operator paid for gas. Only spending is booked, since its funding is not in the ledger. */
export function gasAccount(coin: Commodity, address: string): string {
  return `Assets:Gas:${tokenPart(coin)}:${shortAddress(address)}`;
}

/** Whether the operator books to this account too: the ledger has neither its funding nor all outgoing transfers. */
export function isBookedByOthers(account: string): boolean {
  return /^Assets:(?:Gas|Treasury):/.test(account);
}

/** Transactions that the operator sent, by purpose. */
export function gasExpense(purpose: CostPurpose): string {
  return `Expenses:Gas:${purpose.slice(0, 1).toUpperCase()}${purpose.slice(1)}`;
}

/** Spends that were earned and not yet paid out. */
export function spendsReceivable(token: Commodity, operator: string): string {
  return `Assets:Receivable:Spends:${tokenPart(token)}:${shortAddress(operator)}`;
}

/** `isProven`: the chain or an operator confirmed the payment. */
export function jobIncome(serviceId: number, jobIndex: number, isProven: boolean): string {
  return `Income:${isProven ? 'Jobs' : 'Unconfirmed'}:${serviceId}:${jobIndex}`;
}

export function chatIncome(model: string | undefined): string {
  return `Income:Chat:${model === undefined ? 'Unknown' : accountPart(model)}`;
}

function tokenPart({ network, tag }: Commodity): string {
  return `${network?.replace('eip155:', 'Eip155-')}:${tag}`;
}

/** Both ends of an address, as explorers show it. */
function shortAddress(address: string): string {
  return `${address.slice(0, 8)}-${address.slice(-6)}`;
}

/** A name as part of an account: other characters become hyphens, and a hash keeps similar names apart. */
function accountPart(name: string): string {
  const clean = name
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 60);
  const capital = clean.slice(0, 1).toUpperCase() + clean.slice(1);
  return capital === name ? name : [capital, hashOf(name)].filter(Boolean).join('-');
}

/** 8 capitals and digits that stand for a text. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8).toUpperCase();
}
