import { discardCall } from '../../src/calls/use-cases/discard-call.ts';
import { resumeRunner } from '../../src/calls/use-cases/pause-runner.ts';
import { waitForCalls } from '../chaos/idle.ts';
import { openAccount } from '../chaos/prepare-credit.ts';
import type { Records } from '../chaos/records.ts';
import { ask, withLedger, withOwner } from '../chaos/sql.ts';
import { repeatUntil } from '../chaos/until.ts';
import { type Participants, poisoned, poisonRunner } from './participants.ts';

const grantMicros = 10_000_000_000n;
/** Far longer than any call waits for a runner that works. */
const staleSecs = 3_600;
const idleMs = 60_000;

/** The calls of the service without a runner look as if they had waited for an hour. */
export function makeStale(databaseUrl: string, isOver: AbortSignal): Promise<void> {
  return withOwner(databaseUrl, (owner) =>
    repeatUntil(
      isOver,
      () => 200,
      () =>
        owner.query(
          `update tollbook.call set created_at = created_at - make_interval(secs => $2), due_at = due_at - make_interval(secs => $2)
           where service_id = $1 and status = 'ready' and created_at > clock_timestamp() - make_interval(secs => $2)`,
          [poisoned.leased, staleSecs],
        ),
    ),
  );
}

/** As an operator would: the runner is resumed and refuses its calls, the others are discarded. Returns what is still open. */
export function endPoison({ poison }: Participants, databaseUrl: string): Promise<string[]> {
  poison.relent();
  return withLedger(databaseUrl, async (ledger) => {
    await resumeRunner(ledger, { name: poisonRunner }, { operator: 'load-balancer-test' });
    const calls = await ask<{ call_id: string }>(
      databaseUrl,
      `select call_id from tollbook.call where service_id = ${poisoned.leased} and status = 'ready'`,
    );
    const why = { why: 'no runner serves it', operator: 'load-balancer-test' };
    for (const { call_id: id } of calls) await discardCall(ledger, Number(id), why);
    return waitForCalls(databaseUrl, idleMs);
  });
}

/** Accounts with credit for a whole run. */
export function openAccounts(databaseUrl: string, count: number, records: Records) {
  const names = Array.from({ length: count }, (_, index) => `chatter-${index}`);
  return withLedger(databaseUrl, (ledger) =>
    Promise.all(names.map((name) => openAccount(ledger, name, grantMicros, records))),
  );
}
