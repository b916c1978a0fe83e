import type pg from 'pg';
import type { RecordedEvent } from '../domain/events/event.ts';
import { alertBody, alertOf } from '../jobs/alert.ts';
import type { OperatorLog } from '../domain/values/operator-log.ts';
import type { Webhook } from '../peers/http/webhook.ts';
import type { LedgerDatabase } from '../store/database.ts';
import { endFollowUps, readEvent, takeFollowUps } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 2_000;
const maxAlerts = 16;

/** Sends the ledger's alerts to the operator, at least once each: to the log, and to a webhook if one is configured. */
export function startAlerter(
  context: { readonly pool: pg.Pool; readonly db: LedgerDatabase; readonly log: OperatorLog },
  webhook: Webhook | undefined,
): Loop {
  const send = async (event: RecordedEvent, tries: number): Promise<number | undefined> => {
    const { id, type, text } = alertOf(event);
    if (tries === 1) context.log.error({ alert: type, seq: event.seq, stream: event.stream }, text);
    if (!webhook) return event.seq;
    const timestampSecs = Math.floor(Date.now() / 1_000);
    const sent = await webhook.send({ id, timestampSecs, body: alertBody(event) });
    if (sent.kind === 'delivered') return event.seq;
    context.log.warn({ alert: type, seq: event.seq, cause: sent.cause }, 'an alert could not be sent');
    return undefined;
  };

  return startLoop(
    async () => {
      const due = await takeFollowUps(context.pool, 'alert', undefined, maxAlerts);
      const sent = await Promise.all(
        due.map(async ({ seq, tries }) => {
          const event = await readEvent(context.db, seq);
          return event ? send(event, tries) : seq;
        }),
      );
      await endFollowUps(
        context.pool,
        'alert',
        sent.flatMap((seq) => seq ?? []),
      );
      return due.length === maxAlerts;
    },
    {
      pollMs,
      log: context.log,
      failureMessage: 'alerts could not be read',
      onStopped: async () => webhook?.close(),
    },
  );
}
