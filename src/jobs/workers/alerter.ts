import { isUnreadable } from '../../ledger/rules/event.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { alertOf, unreadableAlert } from '../use-cases/alert.ts';
import type { AlertMessage } from '../../base/peers/alerts/message.ts';
import type { AlertReceiver } from '../../base/peers/alerts/receiver.ts';
import { queueAlert, type QueuedAlert, takeAlertMessages } from '../../ledger/store/alerts.ts';
import { endMessage } from '../../ledger/store/tasks.ts';
import {
  endFollowUps,
  type FollowUp,
  readEvent,
  takeFollowUps,
  collectFollowUps,
} from '../../payments/store/follow-ups.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import type { LedgerReader } from '../../ledger/store/ledger.ts';

const pollMs = 2_000;
const maxAlerts = 16;

interface Context extends LedgerReader {
  readonly log: OperatorLog;
}

/** Tells the operator about events of the ledger, at least once each: in the log, and through the receivers. */
export function startAlerter({ pool, db, log }: Context, receivers: readonly AlertReceiver[]): Loop {
  const names = receivers.map(({ name }) => name);
  const alertFor = async (followUp: FollowUp): Promise<QueuedAlert | undefined> => {
    try {
      const event = await readEvent(db, followUp.seq);
      return event && alertOf(event);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return unreadableAlert(followUp);
    }
  };

  const queueDue = async (
    topic: 'alert' | 'unreadable',
    write: (followUp: FollowUp) => Promise<QueuedAlert | undefined>,
  ): Promise<boolean> => {
    const due = await takeFollowUps(pool, topic, undefined, maxAlerts);
    for (const followUp of due) {
      const alert = await write(followUp);
      const { seq, stream, tries } = followUp;
      if (alert && tries === 1)
        log.error({ alert: alert.kind, seq, stream, text: alert.text }, 'alert firing');
      if (alert) await queueAlert(pool, names, alert);
      await endFollowUps(pool, topic, [seq]);
    }
    return due.length === maxAlerts;
  };

  return startLoop(
    async () => {
      const isMore = [
        await queueDue('alert', alertFor),
        await queueDue('unreadable', async (followUp) => unreadableAlert(followUp)),
      ];
      return isMore.includes(true);
    },
    { pollMs, log, failureMessage: 'alerts could not be read' },
  );
}

/** Sends the queued messages of one receiver. Each has a separate loop: one that does not answer delays no other. */
export function startAlertSender({ pool, log }: Context, receiver: AlertReceiver): Loop {
  const send = async (row: Awaited<ReturnType<typeof takeAlertMessages>>[number]): Promise<void> => {
    const sent = await receiver.send(messageOf(row));
    if (sent.kind === 'delivered') return endMessage(pool, row.message_id);
    const facts = { alert: row.kind, subject: row.subject, receiver: receiver.name, tries: row.tries };
    log.warn({ ...facts, cause: sent.cause }, 'an alert could not be sent: it is sent again');
  };
  return startLoop(
    async () => {
      const due = await takeAlertMessages(pool, receiver.name, maxAlerts);
      await Promise.all(due.map(send));
      return due.length === maxAlerts;
    },
    { pollMs, log, failureMessage: 'alerts could not be read', fields: { receiver: receiver.name } },
  );
}

function messageOf(row: Awaited<ReturnType<typeof takeAlertMessages>>[number]): AlertMessage {
  const { message_id: messageId, kind, subject, status, text, since, created_at: at } = row;
  // a database that was restored gives the numbers out again
  const id = row.id ?? `tollbook-${kind}-${Math.floor(at.getTime() / 1_000)}-${messageId}`;
  return { id, kind, subject, status, text, details: Object(row.details), since, at };
}

const collectMs = 500;
const maxEvents = 5_000;

/** Reads new events of the ledger, for all processes, and creates their follow-ups. */
export function startFollowUpCollector({ pool, log }: Omit<Context, 'db'>): Loop {
  return startLoop(async () => (await collectFollowUps(pool, maxEvents)) === maxEvents, {
    pollMs: collectMs,
    log,
    failureMessage: 'follow-ups could not be collected from the ledger',
  });
}
