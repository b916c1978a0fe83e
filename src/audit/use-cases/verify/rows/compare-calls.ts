import {
  type ExpectedResult,
  findWrongResults,
  type OutboxRow,
  readOutbox,
} from '../../../../calls/store/call-rows.ts';
import type { EncodedClaim } from '../../../../ledger/store/claim-key.ts';
import type { RowSnapshot, WrongRow } from '../../../../ledger/store/stored-rows.ts';

/** The states in which the outbox may have a call. */
export type OutboxStatus = 'pending' | 'watched' | 'ready' | 'leased' | 'unpaid' | 'dead';

/** The row of the outbox that events make. */
export interface ExpectedCall {
  readonly row: Pick<
    OutboxRow,
    | 'service_id'
    | 'job_index'
    | 'network'
    | 'asset'
    | 'symbol'
    | 'caller'
    | 'trigger_kind'
    | 'trigger_name'
    | 'trigger_id'
    | 'idempotency_key'
  > & { readonly claims: readonly EncodedClaim[] };
  /** Undefined before the call was enqueued: no event names it. */
  readonly callId: number | undefined;
  readonly statuses: readonly OutboxStatus[];
  /** A failed payment's call is removed without an event once the payment can never land. */
  readonly mayBeMissing: boolean;
  readonly bodySha256: string;
  readonly bodyBytes: number;
}

/** A payment or a trigger's call, and the row that it must have; undefined if it must have no row. */
export interface OutboxEntry {
  /** The payment that it is found by, as `paymentKey()` names it, or the idempotency key of a trigger. */
  readonly payment: string;
  readonly stream: string;
  readonly call: ExpectedCall | undefined;
}

/** What the outbox has of a part of the ledger. */
export interface ComparedCalls {
  readonly wrong: readonly WrongRow[];
  /** The calls that were found. */
  readonly callIds: readonly number[];
  /** Payments and triggers that have a call in the outbox. */
  readonly payments: ReadonlySet<string>;
}

/** Compares the calls that begin within a part of the ledger with their events, with their bodies and results. */
export async function compareCalls(
  snapshot: RowSnapshot,
  part: { readonly calls: readonly OutboxEntry[]; readonly results: readonly ExpectedResult[] },
): Promise<ComparedCalls> {
  const rows = await readOutbox(
    snapshot,
    part.calls.map(({ payment }) => payment),
  );
  const byPayment = Map.groupBy(rows, ({ payment }) => payment);
  const wrong: WrongRow[] = [];
  for (const { payment, stream, call } of part.calls) {
    const [row, ...more] = byPayment.get(payment) ?? [];
    for (const other of more) wrong.push(strayRow(other));
    if (row && call) wrong.push(...differences(call, stream, row));
    else if (row) wrong.push(strayRow(row));
    else if (call && !call.mayBeMissing)
      wrong.push({ table: 'call', expected: { stream, call_id: call.callId ?? null }, stored: null });
  }
  wrong.push(...(await findWrongResults(snapshot, part.results)));
  return {
    wrong,
    callIds: rows.map(({ call_id: id }) => id),
    payments: new Set(byPayment.keys()),
  };
}

function strayRow({ call_id, stream, status }: OutboxRow): WrongRow {
  return { table: 'call', expected: null, stored: { call_id, stream, status } };
}

/** The row of the call, and that of its body. */
function differences(call: ExpectedCall, stream: string, stored: OutboxRow): WrongRow[] {
  const wrong: WrongRow[] = [];
  const of = { stream, call_id: stored.call_id };
  const { body_sha256: sha256, body_bytes: bytes } = stored;
  const expected = {
    ...call.row,
    stream,
    status: call.statuses.find((one) => one === stored.status) ?? call.statuses.join(' or '),
    call_id: call.callId ?? stored.call_id,
  };
  const given = { ...stored, claims: stored.claims ?? [] };
  const found = Object.fromEntries(
    Object.keys(expected).map((name) => [name, given[name as keyof OutboxRow]]),
  );
  if (JSON.stringify(found) !== JSON.stringify(expected))
    wrong.push({ table: 'call', expected, stored: found });
  if (sha256 === null) wrong.push({ table: 'call_body', expected: of, stored: null });
  else if (sha256 !== call.bodySha256 || bytes !== call.bodyBytes)
    wrong.push({
      table: 'call_body',
      expected: { ...of, sha256: call.bodySha256, bytes: call.bodyBytes },
      stored: { ...of, sha256, bytes },
    });
  return wrong;
}
