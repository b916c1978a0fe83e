import { attestationStream } from './attestation.ts';
import { costMicros, mostMicros, type PriceData, priceOfData } from '../../base/values/price.ts';
import { type Posting, postingOf } from '../../accounts/rules/credit/postings.ts';
import { costTerms } from '../../base/values/transaction-cost.ts';
import { canonicalJson } from '../../base/values/canonical-json.ts';
import type { EntityKind, EntityStep, EventDescriptor } from '../../ledger/rules/descriptor.ts';
import { type EventData, eventDescriptors, type LedgerEvent } from '../../ledger/rules/event.ts';

type CostData = EventData<'transaction_cost_recorded' | 'operator_cost_reversed'>;

/** The state of one entity's stream (chat, account, key, spend, …), as far as it decides which event may follow. */
export class EntityCheck {
  #step: EntityStep = 'none';
  /** Of a chat: the credit held for it, and the part of it that was captured. */
  #heldMicros = 0n;
  #capturedMicros = 0n;
  /** Of a chat that has not ended: the prices of its tokens. */
  #price: PriceData | undefined;
  /** The spend in the stream's first event. */
  #spend = '';
  /** The spend has landed. */
  #isAuthorized = false;
  /** Of a transaction's cost: its valid record. */
  #costTerms = '';
  readonly #periods = new PeriodCheck();
  /** Of a series of invoices: its last number. */
  #invoices = 0;

  /** Applies the stream's next event. Returns the problem, or undefined if it is legal. */
  apply(event: LedgerEvent, stream: string): string | undefined {
    const { transition }: EventDescriptor = eventDescriptors[event.type];
    if (transition.of !== 'entity')
      return transition.of === 'note'
        ? undefined
        : 'it belongs to a quote, but this is not the stream of a quote';
    const { kind, from, to } = transition;
    if (!isOfStream(event, kind, stream)) return 'its data do not match the entity of its stream';
    if (!from.includes(this.#step))
      return this.#step === 'none'
        ? 'the event that must come before it is missing'
        : `the ${kind} is ${this.#step}, which cannot be followed by ${event.type}`;
    if (to) this.#step = to;
    const posting = kind === 'chat' ? postingOf(event) : undefined;
    if (posting) return this.#move(posting);
    return (
      this.#checkCost(event) ??
      this.#checkReversal(event) ??
      this.#nameSpend(event) ??
      this.#numberInvoice(event) ??
      this.#periods.apply(event)
    );
  }

  /** A chat costs its tokens at the price of its admission, if that has one; a recovered one costs its hold. */
  #checkCost(event: LedgerEvent): string | undefined {
    if (event.type === 'chat_admitted') this.#price = event.data.price;
    if (event.type !== 'chat_completed' || !this.#price || event.data.ending === 'recovered')
      return undefined;
    const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = event.data;
    const { cached_tokens: cachedTokens = 0, cache_write_tokens: cacheWriteTokens = 0 } = event.data;
    const price = priceOfData(this.#price);
    this.#price = undefined;
    if (cachedTokens + cacheWriteTokens > promptTokens)
      return 'more of its prompt came from the cache than it has';
    const cost = costMicros({ promptTokens, completionTokens, cachedTokens, cacheWriteTokens, price });
    const isRight = BigInt(event.data.cost_micros) === (cost < mostMicros ? cost : mostMicros);
    return isRight ? undefined : 'its cost does not follow from its tokens and the price of its admission';
  }

  /** A reversal of a cost repeats the record that it takes back. */
  #checkReversal({ type, data }: LedgerEvent): string | undefined {
    if (type === 'transaction_cost_recorded') this.#costTerms = termsText(data);
    if (type !== 'operator_cost_reversed') return undefined;
    return termsText(data) === this.#costTerms
      ? undefined
      : 'it takes back another cost than the one that was recorded';
  }

  /** A chat captures and releases at most what it holds. */
  #move({ from, to, amountMicros }: Posting): string | undefined {
    if (from === 'held') this.#heldMicros -= amountMicros;
    if (to === 'held') this.#heldMicros += amountMicros;
    if (from === 'used') this.#capturedMicros -= amountMicros;
    if (to === 'used') this.#capturedMicros += amountMicros;
    if (this.#heldMicros < 0n) return 'more credit is captured or released than was held for this chat';
    return this.#capturedMicros < 0n ? 'more credit is returned than was captured for this chat' : undefined;
  }

  #numberInvoice({ type, data }: LedgerEvent): string | undefined {
    if (type !== 'operator_invoice_issued') return undefined;
    this.#invoices += 1;
    return data.number === this.#invoices ? undefined : `its number is ${data.number}, not ${this.#invoices}`;
  }

  #nameSpend(event: LedgerEvent): string | undefined {
    const name = spendOf(event);
    if (name === undefined) return undefined;
    if (event.type === 'spend_accepted') this.#spend = name;
    if (event.type === 'spend_authorized') this.#isAuthorized = true;
    if (event.type === 'spend_released' && this.#isAuthorized && !event.data.may_have_landed)
      return 'it landed, so it stays bound to its request';
    return name === this.#spend ? undefined : 'it names a spend other than the accepted one';
  }
}

/** The uniqueness claim of a spend; undefined for other events. */
export function spendOf({ data }: LedgerEvent): string | undefined {
  if (!('commitment' in data)) return undefined;
  const { network, contract, commitment, nonce } = data;
  return `${network}/${contract}/${commitment}/${nonce}`;
}

function termsText(data: CostData): string {
  return canonicalJson({ ...costTerms(data) });
}

function isOfStream({ data }: LedgerEvent, kind: EntityKind, stream: string): boolean {
  const id = idOf(data, kind);
  return id === undefined ? stream.startsWith(`${kind}:`) : stream === `${kind}:${id}`;
}

/** The entity's id in the data; undefined if the data have no id. */
function idOf(data: LedgerEvent['data'], kind: EntityKind): string | number | undefined {
  switch (kind) {
    case 'chat':
    case 'spend':
      return 'chat_id' in data ? data.chat_id : undefined;
    case 'account':
      return 'account_id' in data ? data.account_id : undefined;
    case 'key':
      return 'key_id' in data ? data.key_id : undefined;
    case 'user':
      return 'user_id' in data ? data.user_id : undefined;
    case 'sweep':
      return 'swept_to' in data ? transferName(data) : undefined;
    case 'transfer':
      return transferIn(data);
    case 'cost':
      return 'gas_used' in data ? `${chainOf(data.network)}:${data.transaction}` : undefined;
    case 'break':
      return 'break_id' in data ? data.break_id : undefined;
    case 'invoice':
      return 'series' in data ? data.series : undefined;
    case 'period':
      return 'from_ms' in data ? 'books' : '';
    case 'session':
      return 'session_id' in data ? data.session_id : undefined;
    case 'recovery':
      return 'generation' in data ? data.generation : undefined;
    case 'attestation':
      return 'note' in data ? attestationStream(data.note.split('\n')[0] ?? '').slice(kind.length + 1) : '';
  }
}

function transferIn(data: LedgerEvent['data']): string | undefined {
  if (!('transaction' in data && 'network' in data && 'log_index' in data)) return undefined;
  const { network, transaction, log_index } = data;
  return transaction === undefined || log_index === undefined
    ? undefined
    : transferName({ network, transaction, log_index });
}

/** A transfer's place, as streams are named by it. */
function transferName(at: {
  readonly network: string;
  readonly transaction: string;
  readonly log_index: number;
}): string {
  return `${chainOf(at.network)}:${at.transaction}:${at.log_index}`;
}

function chainOf(network: string): string {
  return network.slice('eip155:'.length);
}

interface Closed {
  readonly fromMs: number;
  readonly toMs: number;
  readonly report: string;
  readonly operator: string;
  isReviewed: boolean;
}

/** The periods of the books: closed one after the other, reviewed by another person, and opened again from the last one on. */
class PeriodCheck {
  readonly #closed: Closed[] = [];

  /** Applies the next event. Returns the problem, or undefined if it is legal or about something else. */
  apply(event: LedgerEvent): string | undefined {
    if (event.type === 'operator_period_closed') {
      const { from_ms: fromMs, to_ms: toMs, report_sha256: report, operator } = event.data;
      const last = this.#closed.at(-1);
      if (fromMs >= toMs) return 'the period ends before it begins';
      if (last && last.toMs !== fromMs) return 'it does not begin where the last closed period ends';
      this.#closed.push({ fromMs, toMs, report, operator, isReviewed: false });
      return undefined;
    }
    if (event.type !== 'operator_period_reviewed' && event.type !== 'operator_period_reopened')
      return undefined;
    const { from_ms: fromMs, to_ms: toMs, operator } = event.data;
    const found = this.#closed.find((one) => one.fromMs === fromMs && one.toMs === toMs);
    if (!found) return 'the period is not closed';
    if (event.type === 'operator_period_reopened') {
      if (found !== this.#closed.at(-1)) return 'a later period is closed';
      this.#closed.pop();
      return undefined;
    }
    if (found.isReviewed) return 'the period was reviewed before';
    if (found.operator.toLowerCase() === operator.toLowerCase()) return 'the person who closed it reviews it';
    if (found.report !== event.data.report_sha256) return 'it reviews another report than that of the close';
    found.isReviewed = true;
    return undefined;
  }
}
