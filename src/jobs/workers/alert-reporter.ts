import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { sha256 } from '../../base/values/sha256.ts';
import type pg from 'pg';
import type { AlertCondition } from '../../base/values/alert-condition.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { AlertMessage } from '../../base/peers/alerts/message.ts';
import type { AlertReceiver } from '../../base/peers/alerts/receiver.ts';
import { late, within } from '../../base/runtime/within.ts';
import { writeRefusal } from '../../ledger/store/database.ts';
import { type AlertReport, reportAlerts } from '../../ledger/store/alerts.ts';
import type { Lane } from '../../ledger/store/lane.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 2_000;
/** A condition that no process has reported for this long is resolved. */
const quietSecs = 20;
/** The database's clock may differ this much from this machine's; a look at it may take a second. */
export const maxClockOffsetMs = 5_000;
const databaseMs = 10_000;
/** For so long no row of an alert can be written, or the ledger takes no append, before the sender tells the operator, and before every other process does. */
const patience = { senderMs: 15_000, otherMs: 90_000 };

export interface Reporting {
  readonly pool: pg.Pool;
  readonly lane: { readonly state: Pick<Lane['state'], 'clockOffsetMs' | 'writesRefused'> };
  readonly log: OperatorLog;
  readonly receivers: readonly AlertReceiver[];
  readonly repeatSecs: number;
  /** What this process sees now. Throws if it cannot look. */
  readonly conditions: () => Promise<readonly AlertCondition[]>;
  /** False while it may not have seen all that holds: then it resolves nothing. */
  readonly isComplete?: () => boolean;
  /** How long the database takes no writes before the operator is alerted from memory. */
  readonly awayAfter?: typeof patience;
}

/** An alert that is sent from memory, because its row cannot be written. */
interface Unwritten {
  readonly message: AlertMessage & AlertCondition;
  untold: readonly AlertReceiver[];
}

/**
 * Reports the conditions that this process sees to the database, which tells the operator once. While the database takes no writes, the
 * operator gets alerts from memory: of that, and of each condition that began meanwhile.
 */
export function startAlertReporter(reporting: Reporting): Loop {
  const { pool, lane, log, receivers, repeatSecs, conditions, awayAfter = patience } = reporting;
  const processId = randomUUID();
  const names = receivers.map(({ name }) => name);
  let isSender = false;
  let reachedMs = performance.now();
  /** The conditions whose rows the database has, by kind and subject. */
  let written: ReadonlySet<string> = new Set();
  const unwritten = new Map<string, Unwritten>();

  /** What keeps the rows from being written; undefined if they are. */
  const report = async (
    seen: AlertReport['conditions'],
    isComplete: boolean,
  ): Promise<AlertCondition | undefined> => {
    const who = { processId, receivers: names, repeatSecs, quietSecs };
    const answer = await within(
      databaseMs,
      reportAlerts(pool, { ...who, conditions: seen, isComplete }),
    ).catch((error: unknown) => writeRefusal(error) ?? late);
    if (typeof answer === 'string') return appendsRefused(answer);
    if (typeof answer === 'symbol') return refusedAppends(lane.state) ?? databaseAway;
    isSender = answer.isSender;
    for (const { kind, subject, status, text } of answer.changes) {
      if (status === 'firing') log.error({ alert: kind, subject, text }, 'alert firing');
      else log.info({ alert: kind, subject, text }, 'alert resolved');
    }
    return undefined;
  };

  const tellFromMemory = async (seen: readonly AlertCondition[]): Promise<void> => {
    const awayForMs = performance.now() - reachedMs;
    if (unwritten.size === 0 && awayForMs < (isSender ? awayAfter.senderMs : awayAfter.otherMs)) return;
    const since = new Date(Date.now() - awayForMs);
    for (const condition of seen) {
      const key = keyOf(condition);
      if (written.has(key) || unwritten.has(key)) continue;
      unwritten.set(key, { message: messageOf(condition, since), untold: receivers });
      log.error({ alert: condition.kind, subject: condition.subject, text: condition.text }, 'alert firing');
    }
    await Promise.all([...unwritten.values()].map(sendUnwritten));
  };

  return startLoop(
    async () => {
      const seen = await within(databaseMs, conditions()).catch(() => late);
      const hasLooked = Array.isArray(seen);
      const found = hasLooked ? (seen as readonly AlertCondition[]) : [];
      const now = [...found, ...clockTrouble(lane.state.clockOffsetMs)];
      // what was told from memory, the operator knows by now: from this process or from another one
      const told = [...unwritten.values()].map(({ message, untold }) => ({
        ...message,
        isTold: untold.length === 0,
      }));
      const toldKeys = new Set(told.map(keyOf));
      const untold = now.filter((condition) => !toldKeys.has(keyOf(condition)));
      const trouble = await report([...untold, ...told], hasLooked && (reporting.isComplete?.() ?? true));
      // what else the database keeps from working is not told beside it
      const others = now.filter(({ kind }) => kind !== 'gateway_not_ready');
      if (trouble) return tellFromMemory([...others, trouble]);
      written = new Set([...untold, ...told].map(keyOf));
      // a row of an alert may find room where an event does not
      const refused = refusedAppends(lane.state);
      if (refused) return tellFromMemory([refused]);
      reachedMs = performance.now();
      unwritten.clear();
    },
    { pollMs, log, failureMessage: 'alerts could not be reported' },
  );
}

function keyOf({ kind, subject }: Pick<AlertCondition, 'kind' | 'subject'>): string {
  return JSON.stringify([kind, subject]);
}

async function sendUnwritten(alert: Unwritten): Promise<void> {
  const sent = await Promise.all(
    alert.untold.map(async (receiver) => ({ receiver, answer: await receiver.send(alert.message) })),
  );
  alert.untold = sent.filter(({ answer }) => answer.kind === 'failed').map(({ receiver }) => receiver);
}

const databaseAway: AlertCondition = {
  kind: 'database_away',
  subject: '',
  text: 'The database cannot be reached: nothing is sold, and calls are not delivered.',
};

const refusals: Readonly<Record<string, string>> = {
  '53100': 'its disk is full',
  '25006': 'it is read-only',
};

/** @param code the SQLSTATE with which the database refuses to write */
function appendsRefused(code: string): AlertCondition {
  const cause = refusals[code] ?? `SQLSTATE ${code}`;
  const text = `The database takes no writes: ${cause}. Nothing is sold, every request with a payment gets 503 uncharged, and calls are not delivered.`;
  return { kind: 'appends_refused', subject: '', text, details: { code } };
}

function refusedAppends({ writesRefused }: Reporting['lane']['state']): AlertCondition | undefined {
  return writesRefused === undefined ? undefined : appendsRefused(writesRefused);
}

function messageOf({ details = {}, ...condition }: AlertCondition, since: Date): Unwritten['message'] {
  const { kind, subject } = condition;
  const id = `tollbook-${kind}-${Math.floor(since.getTime() / 1_000)}-${sha256(subject).slice(2, 10)}`;
  return { ...condition, details, id, status: 'firing', since, at: new Date() };
}

function clockTrouble(offsetMs: number): AlertCondition[] {
  if (Math.abs(offsetMs) <= maxClockOffsetMs) return [];
  const secs = Math.round(offsetMs / 1_000);
  const text = `The database's clock differs from that of ${hostname()} by ${secs} seconds: set both by NTP.`;
  return [{ kind: 'clock_trouble', subject: hostname(), text, details: { offset_secs: secs } }];
}
