import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { shortId, time } from '../../pages/elements.ts';
import type { ConsoleSite } from '../visit.ts';
import { networkName } from '../../pages/known-networks.ts';
import { durationText, jobName } from '../words.ts';
import { explorerLink } from './explorer.ts';

interface Token {
  readonly network: string;
  readonly asset: string;
  readonly symbol: string;
  readonly decimals: number;
}

/** What the events of one payment are read with. */
export interface FactContext {
  readonly site: Pick<ConsoleSite, 'jobs'>;
  /** Of the payment: its later events name the asset alone. Undefined before there is a payment. */
  readonly token: Token | undefined;
}

type Fact = readonly [name: string, value: Shown];

/** Said by another fact or by the page, or of use to programs alone: the leaf has them. */
const leftOut: ReadonlySet<string> = new Set([
  'asset',
  'requester',
  'transfer_method',
  'log_index',
  'request_id',
  'by',
  'decimals',
  'symbol',
  // the options have it in money
  'price_wei',
  'service_id',
  'job_index',
  'x402_version',
  'eip712_name',
  'eip712_version',
]);

/** What an event says, by name, as a person reads it: money with its token, times, durations, jobs and networks by name. */
export function factsOf(data: object, context: FactContext, prefix = ''): Fact[] {
  const token = tokenIn(data, context);
  const job = jobIn(data);
  return [
    ...(job ? [[`${prefix}job`, jobName(context.site, job)] as const] : []),
    ...Object.entries(data).flatMap(([name, value]: [string, unknown]): readonly Fact[] => {
      if (leftOut.has(name) || value === undefined || value === null) return [];
      const label = prefix + name.replaceAll('_', ' ');
      if (Array.isArray(value)) return [[label, value.map((one) => lineOf(one))]];
      if (typeof value === 'object') return factsOf(value, context, name === 'payment' ? '' : `${label}, `);
      return factOf(name, label, `${value as string | number | boolean}`, token);
    }),
  ];
}

function factOf(name: string, label: string, text: string, token: Token | undefined): readonly Fact[] {
  const isCount = /^\d{1,78}$/.test(text);
  if (isCount && /(?:^|_)amount$/.test(name)) return [[label, moneyOf(text, token)]];
  if (isCount && name.endsWith('_bytes')) return [[label.slice(0, -' bytes'.length), `${text} bytes`]];
  if (isCount && name.endsWith('_secs'))
    return [[label.slice(0, -' secs'.length), durationText(Number(text) * 1_000)]];
  // no limit in time
  if (name === 'valid_after' && text === '0') return [];
  const at = timeIn(name, text);
  if (at) return [[label, time(at)]];
  if (name === 'network') return [[label, networkName(text)]];
  if (name === 'reason' || name === 'evidence') return [[label, visibleText(text.replaceAll('_', ' '))]];
  if (!/^0x[0-9a-f]{40,}$/.test(text)) return [[label, visibleText(text)]];
  const isTransaction = name.includes('transaction');
  // digests, nonces and signatures
  if (text.length > 42 && !isTransaction) return [];
  return [[label, html`${shortId(text, label)} ${isTransaction && explorerLink(token?.network, text)}`]];
}

/** One of several values: an option of a quote by its money. */
function lineOf(one: unknown): Html {
  const option = typeof one === 'object' && one !== null ? (one as Partial<Token & { amount: string }>) : {};
  const { network = '', asset = '', symbol, decimals, amount } = option;
  if (symbol === undefined || decimals === undefined || amount === undefined)
    return html`<span class="line hint">one that this gateway does not know</span>`;
  const money = moneyOf(amount, { network, asset, symbol, decimals });
  return html`<span class="line">${money} on ${networkName(network)}</span>`;
}

function moneyOf(atoms: string, token: Token | undefined): Html {
  return token
    ? tokenAmount(BigInt(atoms), token)
    : html`${atoms} <span class="unit">smallest units of its token</span>`;
}

/** The token of amounts: the one that the event describes, or that of the payment if the event names no other asset. */
function tokenIn(data: object, { token }: FactContext): Token | undefined {
  const own = data as Partial<Token>;
  const { network, asset, symbol, decimals } = own;
  if (network !== undefined && asset !== undefined && symbol !== undefined && decimals !== undefined)
    return { network, asset, symbol, decimals };
  return asset === undefined || asset === token?.asset ? token : undefined;
}

function jobIn(data: object): Parameters<typeof jobName>[1] | undefined {
  const { service_id: serviceId, job_index: jobIndex } = data as {
    readonly service_id?: number;
    readonly job_index?: number;
  };
  return serviceId === undefined || jobIndex === undefined ? undefined : { serviceId, jobIndex };
}

/** A time of an event: in Unix seconds under the names of such times, or as RFC 3339. */
function timeIn(name: string, text: string): Date | undefined {
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return new Date(text);
  const secs = /_at$|_time$|^valid_(?:before|after)$|^expiry$/.test(name) && /^\d{9,11}$/.test(text);
  return secs ? new Date(Number(text) * 1_000) : undefined;
}
