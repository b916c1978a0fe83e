import type { EncodedClaim } from './claim-key.ts';
import { keptClaims } from './encode-call.ts';
import type { CallChange, EncodedEvent, LaneCommand } from './lane-command.ts';

/** Between items, and between the fields of one. Canonical JSON contains neither, and no other text is sent that does. */
export const separators = { item: '\u001F', field: '\u001E' } as const;

type AddedCall = Extract<CallChange, { readonly op: 'add' }>;
type ChangedCall = Extract<
  CallChange,
  { readonly op: 'release' | 'lease' | 'answer' | 'check' | 'complete' }
>;

/** A command's share of each argument of `tollbook.append_uncontended`. */
export interface UncontendedParts {
  readonly stream: string;
  readonly expected: string;
  /** When the quote that it takes was issued; empty for a command that takes none. */
  readonly issuedAt: string;
  /** Empty for a command without an end. */
  readonly endsAt: string;
  readonly types: string;
  readonly data: string;
  readonly events: number;
  readonly claims: readonly string[];
  /** The request that it refuses, and the one that must not have been refused; empty for none. */
  readonly refuses?: string;
  readonly unlessRefused?: string;
  /** Nonces of callers. */
  readonly nonces?: readonly string[];
  readonly added: string | undefined;
  readonly changed: ChangedCall | undefined;
  readonly body: string | undefined;
  /** A completion to be admitted. */
  readonly admitted?: string | undefined;
  /** A hold to be ended. */
  readonly settled?: string | undefined;
  /** What no other command of its batch may have: its streams, its claims, its call and its chat. */
  readonly unique: readonly string[];
}

/**
 * A command's parts; undefined if its kind is always decided: it frees claims, changes a call otherwise than by adding, releasing, leasing,
 * checking or completing it, sums refusals or quotes, ends a halt, or has text that would have to be escaped.
 */
export function uncontendedParts(
  { stream, expect, issuedAt, endsAt, refuses = '', unlessRefused = '', freed = [], lost, call }: LaneCommand,
  events: readonly EncodedEvent[],
  claims: readonly EncodedClaim[],
): UncontendedParts | undefined {
  if (freed.length > 0 || (call && call.op !== 'add' && !isChange(call))) return undefined;
  if (events.some(({ type }) => decidedTypes.has(type))) return undefined;
  const added = call?.op === 'add' ? call : undefined;
  const changed = call && isChange(call) ? call : undefined;
  const fieldsOfCall = added ? fieldsOfAdded(added, claims) : [];
  const nonces = claims.flatMap((claim) =>
    claim.kind === 'caller_nonce'
      ? [[claim.caller, String(claim.service_id), String(claim.job_index), claim.nonce_sha256, stream]]
      : [],
  );
  const data = events.map((event) => event.data).join(separators.field);
  const contentType = added?.body?.contentType ?? '';
  // an empty content type would be stored as none; the database looks at escapes in the deciding function
  if (
    !isPlain([stream, contentType, ...fieldsOfCall, ...nonces.flat()]) ||
    added?.body?.contentType === '' ||
    data.includes('\\')
  )
    return undefined;
  return {
    stream,
    expected: expect === undefined ? '' : String(expect),
    issuedAt: issuedAt === undefined ? '' : String(issuedAt),
    endsAt: endsAt === undefined ? '' : String(endsAt),
    types: events.map(({ type }) => type).join(separators.field),
    data,
    events: events.length,
    claims: claims.flatMap((claim) =>
      claim.kind === 'caller_nonce' ? [] : joined([claim.key, claim.binding, stream]),
    ),
    nonces: nonces.map(joined),
    refuses,
    unlessRefused,
    added: added && joined([stream, ...fieldsOfCall]),
    changed,
    body: added?.body && joined([added.bodyId, contentType, added.body.bytes.toString('base64')]),
    unique: [
      stream,
      ...(lost ? [lost.stream] : []),
      ...claims.map(({ key }) => joined(['claim', key])),
      ...(changed ? [joined(['call', String(changed.callId)])] : []),
    ],
  };
}

/** Events that do more than to be recorded: two count others, one ends a halt. */
const decidedTypes: ReadonlySet<string> = new Set(['refusals_counted', 'quotes_issued', 'ledger_recovered']);

const controls = /\p{Cc}/u;

/** Whether texts can be sent as items and fields. */
export function isPlain(texts: readonly string[]): boolean {
  return !controls.test(texts.join(''));
}

export const joined = (fields: readonly string[]): string => fields.join(separators.field);

const changes: ReadonlySet<string> = new Set(['release', 'lease', 'answer', 'check', 'complete']);

function isChange(call: CallChange): call is ChangedCall {
  return changes.has(call.op);
}

/** In the order in which the function takes them; the claims that the call keeps as JSON. */
function fieldsOfAdded(call: AddedCall, claims: readonly EncodedClaim[]): string[] {
  const {
    serviceId,
    jobIndex,
    bodyId,
    network,
    asset,
    symbol,
    caller = '',
    payment,
    idempotencyKey,
    delayMs,
    traceparent = '',
    order,
  } = call;
  const numbers = [String(serviceId), String(jobIndex)];
  const kept = keptClaims(claims);
  const keptText = kept.length > 0 ? JSON.stringify(kept) : '';
  return [
    ...numbers,
    bodyId,
    network,
    asset,
    symbol,
    caller,
    payment,
    String(delayMs),
    keptText,
    traceparent,
    ...(order
      ? [order.key, String(order.limit), order.keepsPlace ? 'keeps' : '', String(order.maxFailures ?? '')]
      : ['', '', '', '']),
    idempotencyKey,
  ];
}
