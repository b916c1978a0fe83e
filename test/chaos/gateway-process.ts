import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConstantChanges } from '../../src/base/config/constants.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import { longestKeptBytes } from './route-config.ts';
import { gatewayConfig, type GatewayConfigValues, gatewaySecrets, usualConfig } from './gateway-config.ts';
import { type GuardedChild, startGuardedChild } from './guarded-child.ts';
import type { Scope } from './rig.ts';

/** One place for a gateway: whenever the process in it ends, the next one is started. */
export interface GatewaySlot {
  readonly name: string;
  readonly url: string;
  /** Where it sells routes; undefined where it sells none. */
  readonly routesUrl: string | undefined;
  readonly configFile: string;
  /** SIGKILL; false where nothing runs. */
  kill(): boolean;
  /** SIGSTOP, and SIGCONT after `ms`, or at once by `thaw`. */
  freeze(ms: number): void;
  thaw(): void;
  /** Resolves when a gateway listens. Throws with its log if none does. */
  untilUp(): Promise<void>;
  /** Ends the gateway; nothing is started until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  /** SIGTERM; resolves when the next process listens. One that does not end in order is a fault. */
  restart(): Promise<void>;
  /** Kills it; resolves when the next process listens or has ended, which is not a fault until `resume`. */
  startAgain(): Promise<'up' | 'refused'>;
  stop(): Promise<void>;
  /** What ended without having been killed, with its last words. */
  readonly faults: readonly string[];
  readonly log: () => string;
}

export interface GatewaySlotOptions {
  readonly name: string;
  /** Where its configuration is written. */
  readonly dir: string;
  /** Its configuration, but for its ports. */
  readonly config: Omit<GatewayConfigValues, 'port' | 'routes'>;
  /** The upstream of its routes; left out, it sells none. */
  readonly routeUpstreamUrl?: string | undefined;
  /** The folder that holds `src/`; left out, this repository. */
  readonly root?: string;
  readonly databaseUrl: string;
  /** It says how wrong the gateway's clock is: see clock-shift.mjs. Left out, the clock is right. */
  readonly clockFile?: string;
  /** Of the configuration; those of the fault harness if they are left out. */
  readonly constants?: ConstantChanges;
  /** Whether a gateway that does not come up may be excused: its database is away. Left out, no gateway may end by itself. */
  readonly isExcused?: () => boolean;
}

/** Far more than a start takes on a busy machine. */
const longestStartMs = 90_000;
const clockShift = path.join(import.meta.dirname, 'clock-shift.mjs');
const serveScript = path.join(import.meta.dirname, 'serve.ts');
/** What a run of minutes has to meet. */
export const chaosConstants = {
  log: { sealEveryMs: 20 },
  jobs: { confirmTimeoutMs: 1_000 },
  delivery: {
    backoffCapMs: 200,
    maxAttempts: 12,
    leaseMarginSecs: 0,
    maxResultBytes: longestKeptBytes,
  },
  chat: { failedAuthPerMinute: 1_000, spendAuthPerMinute: 1_000, refusedPerMinute: 1_000 },
  // a lease is longer than a freeze, and the end of repetitions meets its client
  routes: { leaseSecs: 6, retrySecs: 5 },
  spend: { claimMarginSecs: 60, authorizeTimeoutMs: 3_000, nonceWaitMs: 1_000 },
} as const satisfies ConstantChanges;

/** The constants of a gateway whose requests to the facilitator all have the time limit of its variant. */
function constantsOf({ constants = chaosConstants, config }: GatewaySlotOptions): ConstantChanges {
  const { timeoutMs } = config.variant ?? usualConfig;
  return { ...constants, jobs: { facilitatorVerifyTimeoutMs: timeoutMs, ...constants.jobs } };
}

/** Starts a gateway on a free port, and ends it with the scope. */
export async function startGatewaySlot(scope: Scope, options: GatewaySlotOptions): Promise<GatewaySlot> {
  const port = await freePort();
  const configFile = path.join(options.dir, `gateway-${options.name}.toml`);
  const upstreamUrl = options.routeUpstreamUrl;
  const routes = upstreamUrl === undefined ? undefined : { upstreamUrl, port: await freePort() };
  writeFileSync(configFile, gatewayConfig({ ...options.config, port, routes }));
  const slot = createGatewaySlot(options, urlAt(port), routes && urlAt(routes.port), configFile);
  scope.defer(() => slot.stop());
  return slot;
}

function urlAt(port: number): string {
  return `http://127.0.0.1:${port}`;
}

function createGatewaySlot(
  options: GatewaySlotOptions,
  url: string,
  routesUrl: string | undefined,
  configFile: string,
): GatewaySlot {
  const { root = repositoryRoot, isExcused = () => false } = options;
  const faults: string[] = [];
  let logs = '';
  let child: GuardedChild | undefined;
  let isUp = false;
  let isKilled = false;
  /** By SIGTERM, to end. */
  let isAsked = false;
  let isStopping = false;
  let isPaused = false;
  /** Also while a process is being started. */
  let isRunning = false;
  let mayRefuse = false;
  let endings = 0;
  let thawing: NodeJS.Timeout | undefined;

  const runOnce = async (): Promise<void> => {
    const wasExcused = isExcused();
    const started = await startGuardedChild({
      args: [
        '--import',
        './scripts/check-node.mjs',
        ...(options.clockFile === undefined ? [] : ['--import', clockShift]),
        serveScript,
        JSON.stringify(constantsOf(options)),
        '--config',
        configFile,
      ],
      cwd: root,
      env: {
        DATABASE_URL: options.databaseUrl,
        ...gatewaySecrets,
        ...(options.clockFile === undefined ? {} : { CHAOS_CLOCK_FILE: options.clockFile }),
      },
    });
    child = started;
    [isKilled, isAsked] = [false, false];
    let isInOrder = false;
    started.onLine((line) => {
      if (line.includes('"msg":"listening"')) isUp = true;
      if (line.includes('"msg":"stopped: every request has its answer"')) isInOrder = true;
    });
    if (isStopping) started.signal('SIGKILL');
    const code = await started.ended;
    const wasUp = isUp;
    [child, isUp] = [undefined, false];
    endings += 1;
    logs = `${logs}${started.log()}--- ended with ${code} ---\n`.slice(-2_000_000);
    const isInPlan =
      isKilled ||
      isStopping ||
      mayRefuse ||
      (isAsked && isInOrder && code === 0) ||
      (!wasUp && (wasExcused || isExcused()));
    if (!isInPlan)
      faults.push(`gateway ${options.name} ended by itself with ${code}: ${lastLines(started.log())}`);
  };

  const run = async (): Promise<void> => {
    while (!isStopping) {
      isRunning = !isPaused;
      if (isRunning) await runOnce();
      isRunning = false;
      if (!isStopping) await sleep(100);
    }
  };
  const running = run();

  const thaw = (): void => {
    clearTimeout(thawing);
    child?.signal('SIGCONT');
  };
  return {
    name: options.name,
    url,
    routesUrl,
    configFile,
    faults,
    log: () => logs + (child?.log() ?? ''),
    kill() {
      if (!child || isKilled) return false;
      isKilled = true;
      child.signal('SIGKILL');
      return true;
    },
    freeze(ms) {
      child?.signal('SIGSTOP');
      clearTimeout(thawing);
      thawing = setTimeout(thaw, ms);
    },
    thaw,
    async untilUp() {
      const deadline = performance.now() + longestStartMs;
      while (!isUp) {
        if (performance.now() > deadline)
          throw new Error(`gateway ${options.name} did not start: ${lastLines(logs + (child?.log() ?? ''))}`);
        await sleep(20);
      }
    },
    async pause() {
      isPaused = true;
      while (isRunning) {
        isKilled = true;
        child?.signal('SIGKILL');
        await sleep(20);
      }
    },
    resume: () => void ([isPaused, mayRefuse] = [false, false]),
    async restart() {
      const before = endings;
      isAsked = true;
      child?.signal('SIGTERM');
      while (endings === before || !isUp) await sleep(20);
    },
    async startAgain() {
      mayRefuse = true;
      const before = endings;
      child?.signal('SIGKILL');
      while (endings === before || (!isUp && endings === before + 1)) await sleep(20);
      return isUp ? 'up' : 'refused';
    },
    async stop() {
      isStopping = true;
      clearTimeout(thawing);
      child?.signal('SIGKILL');
      await running;
    },
  };
}

function lastLines(log: string): string {
  return log.trim().split('\n').slice(-3).join(' | ').slice(-1_500);
}
