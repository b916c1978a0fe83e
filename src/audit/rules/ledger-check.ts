import { createHash } from 'node:crypto';
import { CreditCheck } from '../../accounts/rules/credit/postings.ts';
import { countsOf } from '../../ledger/rules/counters.ts';
import {
  type EventData,
  eventDescriptors,
  isEventType,
  type EventType,
  type LedgerEvent,
} from '../../ledger/rules/event.ts';
import { noncePart } from '../../payments/rules/payment.ts';
import { recordedDigest } from '../../payments/rules/quote.ts';
import type { RecordedOptions } from '../../payments/rules/quote-terms.ts';
import { HashedNumbers } from '../../base/values/hashed-numbers.ts';
import { hasSortedKeys } from '../../base/values/canonical-json.ts';
import { type Credential, CredentialCheck } from './credential-check.ts';
import { spendOf, EntityCheck } from './entity-check.ts';
import { RecordedTransferCheck, type TransferPlace } from './recorded-transfer-check.ts';
import { SpendRequestCheck } from './spend-request-check.ts';
import { claimOf, nameOf, QuoteCheck } from './payment-check.ts';
import { TriggeredCallCheck } from './triggered-call-check.ts';
import { namedQuote } from './stream-ends.ts';
import { TopUpCheck } from './top-up-check.ts';

/** The first error in a ledger. */
export interface LedgerProblem {
  /** Position in the ledger, counted from 1, whatever `seq` the event itself has. */
  readonly seq: number;
  readonly words: string;
}

interface Leaf {
  readonly at: string;
  readonly data: unknown;
  readonly lane: number;
  readonly schema: number;
  readonly seq: number;
  readonly stream: string;
  readonly type: EventType;
  readonly version: number;
}

const leafKeys = 'at,data,lane,schema,seq,stream,type,version';
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * Reads a ledger's leaves in order and checks each against all before it: bytes, position, versions, uniqueness claims,
 * transitions, credit. Keeps state per stream, never the events. Independent of quote-state.ts and payment-progress.ts on
 * purpose: an error in the state machine must not hide itself here.
 */
export class LedgerCheck {
  #seq = 0;
  #at = '';
  readonly #counts = new Map<string, number>();
  /** Of streams without a quote, only the version. */
  readonly #versions = new Map<string, number>();
  readonly #streams = new Map<string, QuoteCheck>();
  readonly #entities = new Map<string, EntityCheck>();
  readonly #triggeredCalls = new TriggeredCallCheck();
  readonly #credit = new CreditCheck();
  readonly #topUps = new TopUpCheck();
  /** The options of quotes, by their text: those of a job are the same until its price or a rate changes. */
  readonly #options = new Map<string, RecordedOptions>();
  /** What was claimed: 1. */
  readonly #payments = new HashedNumbers();
  readonly #transfers = new HashedNumbers();
  readonly #credentials = new CredentialCheck();
  readonly #recordedTransfers = new RecordedTransferCheck();
  readonly #spends = new Set<string>();
  readonly #spendRequests = new SpendRequestCheck();
  readonly #isLast: (stream: string, seq: number) => boolean;
  #logGeneration = 1;
  #contractPayments = 0;

  /** `isLast`: whether no event after `seq` is of a stream or names it (see StreamEnds). Its state is forgotten then. */
  constructor(isLast: (stream: string, seq: number) => boolean = () => false) {
    this.#isLast = isLast;
  }

  /** Events read so far. */
  get seq(): number {
    return this.#seq;
  }

  /** Events read so far, by type, with the refusals that are recorded as sums. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Payments that are said to be signed by a contract: whether they are can be asked only on their chain. */
  get contractPayments(): number {
    return this.#contractPayments;
  }

  /** Checks the next leaf. Returns the problem, or undefined. After a problem, results for later leaves have no meaning. */
  next(bytes: Buffer): LedgerProblem | undefined {
    this.#seq += 1;
    const words = this.#check(bytes);
    return words === undefined ? undefined : { seq: this.#seq, words };
  }

  #check(bytes: Buffer): string | undefined {
    const leaf = readLeaf(bytes);
    if (typeof leaf === 'string') return leaf;
    const { seq, at, type, stream } = leaf;
    if (seq !== this.#seq) return misplaced(this.#seq, leaf);
    const known = this.#streams.get(stream);
    const version = known?.version ?? this.#versions.get(stream) ?? 0;
    if (leaf.version !== version + 1)
      return `${type} is version ${leaf.version} of ${stream}, whose last version is ${version}: an event of it is missing or moved`;
    if (at < this.#at)
      return `${type} of ${stream} has the time ${at}, but the event before it has ${this.#at}: times were changed`;
    this.#at = at;
    const parsed = eventDescriptors[type].schema.safeParse(leaf.data);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      return `the data of ${type} do not match its schema: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`;
    }
    const event = { type, data: parsed.data } as LedgerEvent;
    for (const [counted, count] of countsOf(event))
      this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + count);
    const wrong = this.#apply(event, leaf, known);
    if (wrong !== undefined) return `${type} of ${stream}: ${wrong}`;
    this.#forgetEnded(event, stream);
    return undefined;
  }

  #forgetEnded({ data }: LedgerEvent, stream: string): void {
    const named = namedQuote(data);
    for (const one of named === undefined ? [stream] : [stream, named]) {
      if (!this.#isLast(one, this.#seq)) continue;
      this.#credentials.forget(this.#streams.get(one)?.paymentName ?? '');
      this.#streams.delete(one);
      this.#versions.delete(one);
      this.#entities.delete(one);
      this.#triggeredCalls.forget(one);
    }
  }

  #apply(event: LedgerEvent, { stream, version }: Leaf, known: QuoteCheck | undefined): string | undefined {
    if (known) {
      known.version = version;
      return known.apply(event) ?? this.#claim(event, known);
    }
    if (event.type === 'quote_issued') {
      if (version !== 1) return 'a quote must be the first event of its stream';
      if (recordedDigest(event.data) !== stream) return 'its terms do not match its digest';
      this.#streams.set(stream, new QuoteCheck(event.data, this.#sharedOptions(event.data.options)));
      return undefined;
    }
    if (event.type === 'payment_recovered') return this.#recoverPayment(event, stream, version);
    this.#versions.set(stream, version);
    if (event.type === 'call_triggered') return this.#triggeredCalls.begin(event.data, stream, version);
    if (this.#triggeredCalls.has(stream)) return this.#triggeredCalls.apply(event, stream);
    // of a request that found no capacity after it: it claims nothing
    if (event.type === 'auth_passed' && stream.startsWith('request:')) return undefined;
    const wrong = this.#applyToEntity(event, stream);
    if (wrong !== undefined) return wrong;
    if (event.type === 'operator_sweep_recorded') return this.#claimTransfer(event.data);
    if (event.type === 'operator_transfer_recorded' || event.type === 'operator_transfer_reversed')
      return this.#recordTransfer(event, stream);
    return (
      this.#recover(event) ??
      this.#claimSpend(event, stream) ??
      this.#topUps.apply(event, (digest) => this.#streams.get(digest)) ??
      this.#credit.apply(event, stream)
    );
  }

  #applyToEntity(event: LedgerEvent, stream: string): string | undefined {
    let entity = this.#entities.get(stream);
    if (!entity && eventDescriptors[event.type].transition.of === 'entity') {
      entity = new EntityCheck();
      this.#entities.set(stream, entity);
    }
    return entity ? entity.apply(event, stream) : QuoteCheck.withoutQuote(event);
  }

  #sharedOptions(options: RecordedOptions): RecordedOptions {
    const text = JSON.stringify(options);
    const known = this.#options.get(text);
    if (known) return known;
    this.#options.set(text, options);
    return options;
  }

  #recoverPayment(
    event: Extract<LedgerEvent, { type: 'payment_recovered' }>,
    stream: string,
    version: number,
  ): string | undefined {
    const { network, transfer_method: method, asset, payer, payment_nonce: nonce } = event.data;
    const { generation, refused } = event.data;
    if (version !== 1) return 'a recovered payment must be the first event of its stream';
    if ((generation === undefined) === (refused === undefined))
      return 'either a recovery has found it, or a gateway has refused it';
    if (generation !== undefined && generation > this.#logGeneration)
      return 'no recovery of this generation was recorded before it';
    const scope = noncePart({ transferMethod: method }, asset);
    const fingerprint = `${network}/${method}/${scope}/${payer}/${nonce}`;
    if (`0x${createHash('sha256').update(fingerprint).digest('hex')}` !== stream)
      return 'its stream is not named by its fingerprint';
    const known = new QuoteCheck();
    this.#streams.set(stream, known);
    if (!this.#claimPayment(claimOf(method, nameOf(event.data))))
      return 'this payment was claimed before: one authorization pays once';
    return known.apply(event) ?? this.#claimTransfer(event.data, known);
  }

  #recover(event: LedgerEvent): string | undefined {
    if (event.type !== 'ledger_recovered') return undefined;
    const { generation, kept_seq: kept } = event.data;
    this.#logGeneration += 1;
    if (generation !== this.#logGeneration)
      return `it begins generation ${generation} of the log, but ${this.#logGeneration} is the next one`;
    return kept < this.#seq
      ? undefined
      : `it says that ${kept} events were kept, but itself is event ${this.#seq}`;
  }

  #claimSpend(event: LedgerEvent, stream: string): string | undefined {
    const spend = spendOf(event);
    if (spend === undefined) return undefined;
    if (event.type === 'spend_released') {
      this.#spends.delete(spend);
      return this.#spendRequests.release(stream, event.data.may_have_landed === true);
    }
    if (event.type !== 'spend_accepted') return undefined;
    if (this.#spends.has(spend)) return 'this spend was claimed before: one nonce pays once';
    this.#spends.add(spend);
    return this.#spendRequests.accept(stream, event.data);
  }

  #claim(event: LedgerEvent, known: QuoteCheck): string | undefined {
    switch (event.type) {
      case 'auth_passed':
        known.callerNonce = nonceKey(event.data, known.job);
        return undefined;
      case 'settlement_started':
        return this.#start(event.data, known);
      case 'redelivery_requested':
        return this.#streams
          .get(event.data.quote_digest ?? '')
          ?.breachOf(event.data.payer, event.data.body_keccak256);
      case 'settlement_failed':
        this.#credentials.free(known.paymentName ?? '');
        return undefined;
      case 'enqueued':
      case 'enqueued_again':
        return this.#credentials.enqueue(known.enqueued);
      case 'payment_settled':
      case 'settlement_confirmed':
      case 'refunded':
        return this.#claimTransfer(event.data, known);
      case 'settlement_reorged':
        this.#freeTransfers(event.data, known);
        return undefined;
      default:
        return undefined;
    }
  }

  #start(
    { payment, payment_id: id }: EventData<'settlement_started'>,
    { started, callerNonce, isOfContract }: QuoteCheck,
  ): string | undefined {
    if (isOfContract) this.#contractPayments += 1;
    if (!this.#claimPayment(started)) return 'this payment was claimed before: one authorization pays once';
    const credentials: Credential[] = [];
    if (callerNonce !== undefined) credentials.push({ kind: 'caller_nonce', key: callerNonce });
    if (id !== undefined) credentials.push({ kind: 'payment_id', key: `${payment.payer}/${id}` });
    return this.#credentials.start(started, credentials);
  }

  /** False if it was claimed before. */
  #claimPayment(name: string): boolean {
    if (this.#payments.get(name) !== 0) return false;
    this.#payments.set(name, 1);
    return true;
  }

  /** `quote`: of which it is a payment or a refund. */
  #claimTransfer(
    data: Pick<EventData<'payment_settled'>, 'network' | 'transaction' | 'log_index'>,
    quote?: QuoteCheck,
  ): string | undefined {
    if (data.log_index === undefined) return undefined;
    const key = transferKey({ ...data, log_index: data.log_index });
    if (this.#transfers.get(key) !== 0)
      return 'this on-chain transfer was claimed before: one transfer counts once';
    this.#transfers.set(key, 1);
    if (quote) (quote.transfers ??= []).push(key);
    return undefined;
  }

  #recordTransfer(
    event: Extract<LedgerEvent, { type: 'operator_transfer_recorded' | 'operator_transfer_reversed' }>,
    stream: string,
  ): string | undefined {
    const change = this.#recordedTransfers.apply(event, stream);
    if ('words' in change) return change.words;
    for (const place of change.frees) this.#transfers.set(transferKey(place), 0);
    return change.claims.map((place) => this.#claimTransfer(place)).find((words) => words !== undefined);
  }

  #freeTransfers({ network, transaction }: EventData<'settlement_reorged'>, quote: QuoteCheck): void {
    const prefix = `${network}/${transaction}/`;
    for (const key of quote.transfers ?? []) if (key.startsWith(prefix)) this.#transfers.set(key, 0);
    quote.transfers = quote.transfers?.filter((key) => !key.startsWith(prefix));
  }
}

/** A leaf's fields, or the problem as text. */
function readLeaf(bytes: Buffer): Leaf | string {
  const text = bytes.toString('utf8');
  let leaf: Leaf;
  try {
    leaf = JSON.parse(text) as Leaf;
  } catch {
    return 'this is not an event: its bytes are not JSON';
  }
  if (leaf === null || typeof leaf !== 'object' || Object.keys(leaf).join() !== leafKeys)
    return 'this is not an event: it has missing or unknown fields';
  if (JSON.stringify(leaf) !== text || !hasSortedKeys(leaf.data)) return 'its bytes are not canonical JSON';
  const { at, lane, schema, seq, stream, type, version } = leaf;
  if (lane !== 1 || schema !== 1)
    return `it has lane ${lane} and schema ${schema}, but this version supports only lane 1 and schema 1`;
  if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(version) || typeof stream !== 'string')
    return 'this is not an event: its seq, version or stream is malformed';
  if (typeof at !== 'string' || !time.test(at)) return 'its time is malformed';
  if (!isEventType(type)) return `unknown event type ${String(type)}`;
  return leaf;
}

function misplaced(expected: number, { seq, type }: Leaf): string {
  if (seq < expected) return `event ${seq} (${type}) is repeated or was moved: seq ${expected} was expected`;
  return `event ${seq} (${type}) was found, but ${expected} was expected: events were removed or moved`;
}

function transferKey({ network, transaction, log_index: logIndex }: TransferPlace): string {
  return `${network}/${transaction}/${logIndex}`;
}

function nonceKey(
  { caller, caller_nonce_sha256: hash }: EventData<'auth_passed'>,
  job: string,
): string | undefined {
  return hash === undefined ? undefined : `${caller}/${job}/${hash}`;
}
