import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { isDatabaseLoss, openBeside, writeRefusal } from '../store/database.ts';
import type { Lane } from '../store/lane.ts';
import { SessionError } from '../store/session.ts';
import { lackedMigrations } from '../store/migrations.ts';
import { forgetGateway, sendGatewayHeartbeat } from '../store/processes.ts';
import { type Loop, startLoop } from './loop.ts';
import type { Check } from '../../base/values/check.ts';

const heartbeatMs = 1_000;
const timeoutMs = 5_000;
/** A process that ends does not wait for an unreachable database. */
const lastMs = 1_000;

/**
 * Whether a load balancer should send requests to this process: the database takes writes, has this program's migrations, and
 * the process is not about to stop. No peer, no runner and no client can change it.
 */
export interface Readiness {
  readonly status: 'ready' | 'not_ready';
  /** RFC 3339: of the last heartbeat, successful or not. */
  readonly checked_at: string;
  readonly database: Check;
  readonly migrations: Check;
  /** The process will stop, and still serves requests. */
  readonly draining: boolean;
  /** It serves only reads: no balancer should send it clients. */
  readonly quiet?: true;
}

export interface ReadinessChecker {
  /** From the results of the background checks. */
  present(): Readiness;
  /** The first heartbeat, before this process appends. */
  begin(): Promise<void>;
  start(): Loop;
  /** Takes the heartbeats back, once this process appends no more. */
  close(): Promise<void>;
}

interface Parts {
  readonly pool: pg.Pool;
  readonly lane: { readonly state: Pick<Lane['state'], 'writesRefused'> };
  readonly log: OperatorLog;
  readonly isDraining: () => boolean;
  /** It sends no heartbeats, and only reads: it appends nothing, so `tollbook recover` and `go-live` need not wait for its end. */
  readonly isQuiet?: boolean;
  /** Called after every heartbeat that the database has taken. */
  readonly onHeartbeat?: () => void;
}

/**
 * Writes one row a second, its heartbeat, over a separate connection: neither a full pool nor a halted or waiting ledger delays it. A newer
 * database stays fit for this program, so that `tollbook migrate` does not take the gateways of the version before out of service.
 */
export function createReadinessChecker({
  pool,
  lane,
  log,
  isDraining,
  isQuiet = false,
  onHeartbeat,
}: Parts): ReadinessChecker {
  const processId = randomUUID();
  const unchecked: Check = { ok: false, detail: 'not checked yet' };
  let checks = { checkedAt: new Date(0), database: unchecked, migrations: unchecked };
  let wasReady: boolean | undefined;
  let hasBegun = false;

  const present = (): Readiness => {
    // an append notices a full disk first: the heartbeat's row needs no further space
    const { writesRefused } = lane.state;
    const database = writesRefused === undefined ? checks.database : takesNoWrites(writesRefused);
    const { migrations, checkedAt } = checks;
    const draining = isDraining();
    return {
      status: database.ok && migrations.ok && !draining && !isQuiet ? 'ready' : 'not_ready',
      checked_at: checkedAt.toISOString(),
      database,
      migrations,
      draining,
      ...(isQuiet && { quiet: true as const }),
    };
  };

  const check = async (beside: pg.Pool): Promise<void> => {
    const database = await checkDatabase(() =>
      isQuiet ? lackedMigrations(beside) : sendGatewayHeartbeat(beside, processId),
    );
    const migrations = database.ok ? await checkMigrations(beside) : checks.migrations;
    checks = { checkedAt: new Date(), database, migrations };
    if (database.ok) onHeartbeat?.();
    const readiness = present();
    const isReady = readiness.status === 'ready';
    if (isReady === wasReady || readiness.draining) return;
    wasReady = isReady;
    if (isReady) log.info({}, 'the gateway is ready');
    else log.warn({ readiness }, 'the gateway is not ready');
  };

  return {
    present,
    async begin() {
      hasBegun = true;
      await sendGatewayHeartbeat(pool, processId);
    },
    start() {
      const beside = openBeside(pool, timeoutMs);
      return startLoop(() => check(beside), {
        pollMs: heartbeatMs,
        log,
        failureMessage: 'the readiness could not be checked',
        onStopped: () => beside.end(),
      });
    },
    async close() {
      if (!hasBegun) return;
      const beside = openBeside(pool, lastMs);
      await forgetGateway(beside, processId).catch(() => {});
      await beside.end();
    },
  };
}

function takesNoWrites(code: string): Check {
  return { ok: false, detail: `it takes no writes (${code})` };
}

async function checkMigrations(beside: pg.Pool): Promise<Check> {
  const lacked = await lackedMigrations(beside);
  return lacked.length === 0 ? { ok: true } : { ok: false, detail: `pending: ${lacked.join(', ')}` };
}

async function checkDatabase(heartbeat: () => Promise<unknown>): Promise<Check> {
  try {
    // a connection that was closed while idle is found broken once
    await heartbeat().catch(async (error: unknown) => {
      if (!(error instanceof Error && isDatabaseLoss(error)) || writeRefusal(error) !== undefined)
        throw error;
      await heartbeat();
    });
    return { ok: true };
  } catch (error) {
    const code = writeRefusal(error);
    if (code !== undefined) return takesNoWrites(code);
    return { ok: false, detail: error instanceof SessionError ? error.message : 'it cannot be reached' };
  }
}
