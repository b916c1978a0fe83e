import type pg from 'pg';
import { isUnreadable } from '../domain/events/event.ts';
import type { OperatorLog } from '../domain/values/operator-log.ts';
import { type Alert, alertOf, unreadableAlert } from '../jobs/alert.ts';
import type { Webhook } from '../peers/http/webhook.ts';
import type { LedgerDatabase } from '../store/database.ts';
import { endFollowUps, type FollowUp, readEvent, takeFollowUps } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 2_000;
const maxAlerts = 16;

/** Sends the ledger's alerts to the operator, at least once each: to the log, and to a webhook if one is configured. */
export function startAlerter(
  context: { readonly pool: pg.Pool; readonly db: LedgerDatabase; readonly log: OperatorLog },
  webhook: Webhook | undefined,
): Loop {
  const alertFor = async (followUp: FollowUp): Promise<Alert | undefined> => {
    try {
      const event = await readEvent(context.db, followUp.seq);
      return event && alertOf(event);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return unreadableAlert(followUp);
    }
  };

  const send = async (
    { id, type, text, body }: Alert,
    { seq, stream, tries }: FollowUp,
  ): Promise<number[]> => {
    if (tries === 1) context.log.error({ alert: type, seq, stream }, text);
    if (!webhook) return [seq];
    const sent = await webhook.send({ id, timestampSecs: Math.floor(Date.now() / 1_000), body });
    if (sent.kind === 'delivered') return [seq];
    context.log.warn({ alert: type, seq, cause: sent.cause }, 'an alert could not be sent');
    return [];
  };

  const sendDue = async (
    topic: 'alert' | 'unreadable',
    write: (followUp: FollowUp) => Promise<Alert | undefined>,
  ): Promise<boolean> => {
    const due = await takeFollowUps(context.pool, topic, undefined, maxAlerts);
    const sent = await Promise.all(
      due.map(async (followUp) => {
        const alert = await write(followUp);
        return alert ? send(alert, followUp) : [followUp.seq];
      }),
    );
    await endFollowUps(context.pool, topic, sent.flat());
    return due.length === maxAlerts;
  };

  return startLoop(
    async () => {
      const isMore = [
        await sendDue('alert', alertFor),
        await sendDue('unreadable', async (followUp) => unreadableAlert(followUp)),
      ];
      return isMore.includes(true);
    },
    {
      pollMs,
      log: context.log,
      failureMessage: 'alerts could not be read',
      onStopped: async () => webhook?.close(),
    },
  );
}
