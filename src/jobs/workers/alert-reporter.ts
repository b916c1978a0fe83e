import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type pg from 'pg';
import type { AlertCondition } from '../../base/values/alert-condition.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { AlertMessage } from '../../base/peers/alerts/message.ts';
import type { AlertReceiver } from '../../base/peers/alerts/receiver.ts';
import { late, within } from '../../base/runtime/within.ts';
import { type AlertReport, reportAlerts } from '../../ledger/store/alerts.ts';
import type { Lane } from '../../ledger/store/lane.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 2_000;
/** A condition that no process has reported for this long is resolved. */
const quietSecs = 20;
/** The database's clock may differ this much from this machine's; a look at it may take a second. */
const maxOffsetMs = 5_000;
const databaseMs = 10_000;
/** The database is unreachable for this long before the sender tells the operator, and before every other process does. */
const patience = { senderMs: 15_000, otherMs: 90_000 };

export interface Reporting {
  readonly pool: pg.Pool;
  readonly lane: { readonly state: Pick<Lane['state'], 'clockOffsetMs'> };
  readonly log: OperatorLog;
  readonly receivers: readonly AlertReceiver[];
  readonly repeatSecs: number;
  /** What this process sees now. Throws if it cannot look. */
  readonly conditions: () => Promise<readonly AlertCondition[]>;
  /** How long the database is unreachable before the operator is alerted. */
  readonly awayAfter?: typeof patience;
}

/** Reports the conditions that this process sees to the database, which tells the operator once; and alerts the operator directly when the database is unreachable. */
export function startAlertReporter(reporting: Reporting): Loop {
  const { pool, lane, log, receivers, repeatSecs, conditions, awayAfter = patience } = reporting;
  const processId = randomUUID();
  const names = receivers.map(({ name }) => name);
  let isSender = false;
  let reachedMs = performance.now();
  let away: AlertMessage | undefined;
  let untold: readonly AlertReceiver[] = [];

  const report = async (seen: AlertReport['conditions'], isComplete: boolean): Promise<boolean> => {
    const who = { processId, receivers: names, repeatSecs, quietSecs };
    const answer = await within(
      databaseMs,
      reportAlerts(pool, { ...who, conditions: seen, isComplete }),
    ).catch(() => late);
    if (answer === late || typeof answer === 'symbol') return false;
    isSender = answer.isSender;
    for (const { kind, subject, status, text } of answer.changes) {
      if (status === 'firing') log.error({ alert: kind, subject, text }, 'alert firing');
      else log.info({ alert: kind, subject, text }, 'alert resolved');
    }
    return true;
  };

  const tellAway = async (): Promise<void> => {
    const awayForMs = performance.now() - reachedMs;
    if (!away && awayForMs < (isSender ? awayAfter.senderMs : awayAfter.otherMs)) return;
    if (!away) {
      away = awayMessage(new Date(Date.now() - awayForMs));
      untold = receivers;
    }
    const message = away;
    const sent = await Promise.all(
      untold.map(async (receiver) => ({ receiver, answer: await receiver.send(message) })),
    );
    untold = sent.filter(({ answer }) => answer.kind === 'failed').map(({ receiver }) => receiver);
  };

  return startLoop(
    async () => {
      const seen = await within(databaseMs, conditions()).catch(() => late);
      const own = clockTrouble(lane.state.clockOffsetMs);
      // the operator knows by now, from this process or from another one
      const told = away ? [{ ...awayCondition, isTold: untold.length === 0 }] : [];
      const found = Array.isArray(seen) ? (seen as readonly AlertCondition[]) : [];
      if (!(await report([...found, ...own, ...told], Array.isArray(seen)))) return tellAway();
      reachedMs = performance.now();
      away = undefined;
    },
    { pollMs, log, failureMessage: 'alerts could not be reported' },
  );
}

const awayCondition = {
  kind: 'database_away',
  subject: '',
  text: 'The database cannot be reached or written: nothing is sold, and calls are not delivered.',
} as const;

function awayMessage(since: Date): AlertMessage {
  const id = `tollbook-database_away-${Math.floor(since.getTime() / 1_000)}`;
  return { ...awayCondition, id, status: 'firing', details: {}, since, at: new Date() };
}

function clockTrouble(offsetMs: number): AlertCondition[] {
  if (Math.abs(offsetMs) <= maxOffsetMs) return [];
  const secs = Math.round(offsetMs / 1_000);
  const text = `The database's clock differs from that of ${hostname()} by ${secs} seconds: set both by NTP.`;
  return [{ kind: 'clock_trouble', subject: hostname(), text, details: { offset_secs: secs } }];
}
