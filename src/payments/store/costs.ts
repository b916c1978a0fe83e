import type pg from 'pg';
import type { EventOf, RecordedEvent } from '../../ledger/rules/event.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { decoded, leavesIn, readEvents } from '../../ledger/store/streams.ts';

/** The events that may name a transaction of the operator. */
const sendingTypes = [
  'refunded',
  'operator_sweep_recorded',
  'operator_transfer_recorded',
  'spend_authorized',
  'spend_paid_out',
] as const;
export type SendingEvent = EventOf<(typeof sendingTypes)[number]>;

/** The next events after a place in the ledger that may name a transaction of the operator; no record of a transfer that was reversed. */
export async function listSendingEvents(
  pool: pg.Pool,
  afterSeq: number,
  limit: number,
): Promise<SendingEvent[]> {
  const named = leavesIn(queriesOn(pool))
    .where('lane_id', '=', 1)
    .where('seq', '>', afterSeq)
    .where('type', 'in', sendingTypes)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('tollbook.event as later')
            .select('later.seq')
            .whereRef('later.stream', '=', 'tollbook.event.stream')
            .whereRef('later.version', '>', 'tollbook.event.version')
            .where('later.type', '=', 'operator_transfer_reversed'),
        ),
      ),
    )
    .orderBy('seq')
    .limit(limit);
  return (await decoded(named)).filter(isSending);
}

/** The time of the ledger's first event, in Unix milliseconds; undefined if there is none. */
export async function readFirstEventMs(pool: pg.Pool): Promise<number | undefined> {
  const [first] = await readEvents(queriesOn(pool), 0, 1);
  return first && Date.parse(first.at);
}

function isSending(event: RecordedEvent): event is SendingEvent {
  return sendingTypes.some((type) => type === event.type);
}
