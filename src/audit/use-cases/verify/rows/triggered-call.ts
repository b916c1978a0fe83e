import type { RecordedEvent } from '../../../../ledger/rules/event.ts';
import type { ExpectedCall, OutboxEntry } from './expected-call.ts';

/** What the outbox must have of a stream that a trigger began; undefined for another stream. */
export function triggeredCallOf(events: readonly RecordedEvent[]): OutboxEntry | undefined {
  const [first] = events;
  if (first?.type !== 'call_triggered') return undefined;
  const { data, stream } = first;
  const { idempotency_key: payment, trigger: kind, trigger_name: name, trigger_id: id } = data;
  const statuses = statusesOf(events);
  const call: ExpectedCall | undefined = statuses && {
    payment,
    idempotencyKey: null,
    stream,
    job: { serviceId: data.service_id, jobIndex: data.job_index },
    token: null,
    caller: null,
    trigger: { kind, name, id },
    claims: [],
    callId: data.call_id,
    statuses,
    mayBeMissing: false,
    bodySha256: data.body_sha256,
    bodyBytes: data.body_bytes,
  };
  return { payment, stream, call };
}

function statusesOf(events: readonly RecordedEvent[]): ExpectedCall['statuses'] | undefined {
  let statuses: ExpectedCall['statuses'] | undefined = ['ready', 'leased'];
  for (const { type } of events) {
    if (type === 'dead_lettered') statuses = ['dead'];
    if (type === 'operator_requeued') statuses = ['ready', 'leased'];
    if (type === 'completed' || type === 'operator_discarded') statuses = undefined;
  }
  return statuses;
}
