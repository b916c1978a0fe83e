import { payTo, vault, type YearToken } from './chain.ts';

/** The names of accounts and commodities, as docs/finance/books.md lists them. */
export const chart = {
  undelivered: 'Liabilities:Undelivered',
  refundsDue: 'Liabilities:RefundsDue',
  suspense: 'Liabilities:Suspense',
  grantedCredit: 'Liabilities:PrepaidCredit:Granted',
  boughtCredit: 'Liabilities:PrepaidCredit:Bought',
  conversion: 'Equity:Conversion',
  creditGrants: 'Expenses:CreditGrants:Given',
  usedGrants: 'Expenses:CreditGrants:Used',
  breakage: 'Income:Breakage',
  goodwill: 'Income:Refunds',
  unattributed: 'Income:Unattributed',
  chat: (model: string) => `Income:Chat:${model}`,
  job: (serviceId: number, jobIndex: number) => `Income:Jobs:${serviceId}:${jobIndex}`,
  unproven: (serviceId: number, jobIndex: number) => `Income:Unconfirmed:${serviceId}:${jobIndex}`,
  chain: (token: YearToken) => `Assets:Chain:Eip155-84532:${token.symbol}:${shortPayee}`,
  unconfirmed: (token: YearToken) => `Assets:Unconfirmed:Eip155-84532:${token.symbol}:${shortPayee}`,
  treasury: (token: YearToken, address: string = vault) =>
    `Assets:Treasury:Eip155-84532:${token.symbol}:${short(address)}`,
  gas: (purpose: 'Refund' | 'Sweep' | 'Transfer') => `Expenses:Gas:${purpose}`,
  gasOf: (address: string) => `Assets:Gas:Eip155-84532:ETH:${short(address)}`,
} as const;

const short = (address: string): string => `${address.slice(0, 8)}-${address.slice(-6)}`;
const shortPayee = short(payTo);

export const credit = 'CREDIT';
export const creditDecimals = 6;

/** The coin in which the chain is paid for gas. */
export const coin = 'ETH-84532';
export const coinDecimals = 18;

export function commodityOf({ symbol }: YearToken): string {
  return `${symbol}-84532`;
}
