import {
  type ExpectedResult,
  findWrongResults,
  type OutboxRow,
  readOutbox,
} from '../../../../calls/store/call-rows.ts';
import type { RowSnapshot, WrongRow } from '../../../../ledger/store/stored-rows.ts';
import type { ExpectedCall, OutboxEntry } from './expected-call.ts';

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
    if (row && call) wrong.push(...differences(call, row));
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
function differences(call: ExpectedCall, row: OutboxRow): WrongRow[] {
  const wrong: WrongRow[] = [];
  const of = { stream: call.stream, call_id: row.call_id };
  const expected = { ...columnsOf(call, row), ...of, call_id: call.callId ?? row.call_id };
  const stored = {
    stream: row.stream,
    service_id: row.service_id,
    job_index: row.job_index,
    network: row.network,
    asset: row.asset,
    symbol: row.symbol,
    caller: row.caller,
    trigger_kind: row.trigger_kind,
    trigger_name: row.trigger_name,
    trigger_id: row.trigger_id,
    idempotency_key: row.idempotency_key,
    claims: JSON.stringify(row.claims ?? []),
    status: row.status,
    call_id: row.call_id,
  };
  const isSame = Object.entries(expected).every(
    ([column, value]) => stored[column as keyof typeof stored] === value,
  );
  if (!isSame) wrong.push({ table: 'call', expected, stored });
  if (row.body_sha256 === null) wrong.push({ table: 'call_body', expected: of, stored: null });
  else if (row.body_sha256 !== call.bodySha256 || row.body_bytes !== call.bodyBytes)
    wrong.push({
      table: 'call_body',
      expected: { ...of, sha256: call.bodySha256, bytes: call.bodyBytes },
      stored: { ...of, sha256: row.body_sha256, bytes: row.body_bytes },
    });
  return wrong;
}

function columnsOf(
  { job, token, caller, trigger, idempotencyKey, claims, statuses }: ExpectedCall,
  { status }: OutboxRow,
) {
  return {
    service_id: job.serviceId,
    job_index: job.jobIndex,
    network: token?.network ?? null,
    asset: token?.asset ?? null,
    symbol: token?.symbol ?? null,
    caller,
    trigger_kind: trigger?.kind ?? null,
    trigger_name: trigger?.name ?? null,
    trigger_id: trigger?.id ?? null,
    // the key of a call that a trigger made names its stream
    idempotency_key: trigger ? null : idempotencyKey,
    claims: JSON.stringify(claims),
    status: statuses.find((one) => one === status) ?? statuses.join(' or '),
  };
}
