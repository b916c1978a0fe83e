import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createTestClient, http } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import { gatewaySecrets } from '../chaos/gateway-config.ts';
import { startGuardedChild } from '../chaos/guarded-child.ts';
import { type Behaviour, type Peer, well } from '../chaos/peer.ts';
import { withOwner } from '../chaos/sql.ts';
import { runTollbook } from '../chaos/tollbook-command.ts';
import { repeatUntil } from '../chaos/until.ts';
import { loseEvents } from './lose-events.ts';
import { anchorKey, followingTrigger, pushRunnerName, type DrillRig } from './rig.ts';

/** A gateway sees twice a second whether a look is due. */
const betweenLooksMs = 2_000;

/** What an alert is about. */
export interface Fault {
  /** What is wrong, as a sentence. */
  readonly what: string;
  /** The alert of the gateway itself that must fire too; left out if another gateway still works, or if it has none. */
  readonly own?: string;
  /** Labels of the alert that must fire, if several may. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Begins the fault, and returns what ends it. */
  begin(rig: DrillRig): Promise<() => Promise<void>>;
}

/** A peer behaves so until the fault ends. */
async function misbehave(peer: Peer, behave: (path: string) => Behaviour): Promise<() => Promise<void>> {
  peer.behave = behave;
  return async () => void (peer.behave = well);
}

/** A peer behaves so, whatever it is asked. */
function ofPeer(
  name: 'facilitator' | 'chain' | 'rates' | 'runner' | 'upstream',
  behaviour: Behaviour,
  what: string,
  own: Fault['own'],
  labels: Fault['labels'] = {},
): Fault {
  return {
    what,
    labels,
    ...(own !== undefined && { own }),
    begin: (rig) => misbehave(rig[name], () => behaviour),
  };
}

/** Has the discovery service looked at now, not in an hour. */
async function lookNow({ databaseUrl }: DrillRig): Promise<void> {
  await withOwner(databaseUrl(), (owner) =>
    owner.query(`update tollbook.task set due_at = now() where kind = 'listing'`),
  );
}

/** Repeats an action until the fault ends. */
function repeat(everyMs: number, act: () => Promise<unknown>): () => Promise<void> {
  const ending = new AbortController();
  const running = repeatUntil(ending.signal, () => everyMs, act);
  return async () => {
    ending.abort();
    await running;
  };
}

async function operate(rig: DrillRig, ...args: readonly string[]): Promise<void> {
  const { code, output } = await runTollbook(rig.environment, rig.databaseUrl(), args);
  if (code !== 0) throw new Error(`tollbook ${args.join(' ')} ended with ${code}: ${output}`);
}

async function setReadOnly({ databaseUrl }: DrillRig, isReadOnly: boolean): Promise<void> {
  await withOwner(databaseUrl(), async (owner) => {
    const name = pg.escapeIdentifier(owner.database ?? '');
    await owner.query('set default_transaction_read_only = off');
    await owner.query(`alter database ${name} set default_transaction_read_only = ${isReadOnly}`);
    await owner.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`);
  });
}

/** Keeps a lock on a table until the fault ends. */
async function lock({ databaseUrl }: DrillRig, table: string, mode: string): Promise<() => Promise<void>> {
  const owner = new pg.Client(databaseUrl());
  await owner.connect();
  await owner.query(`begin; lock table ${table} in ${mode} mode`);
  return () => owner.end();
}

/** The key has no ether until the fault ends. */
async function impoverish({ environment }: DrillRig, key: `0x${string}`): Promise<() => Promise<void>> {
  const node = createTestClient({ mode: 'anvil', transport: http(environment.chain.url) });
  const address = privateKeyToAddress(key);
  await node.setBalance({ address, value: 0n });
  return () => node.setBalance({ address, value: 10n ** 21n });
}

const second = ({ gateways }: DrillRig) => {
  const [, gateway] = gateways;
  if (!gateway) throw new Error('there is no second gateway');
  return gateway;
};

/** For each alert of the rules what makes it fire. The last one is last: it loses events. */
export const faults: Readonly<Record<string, readonly Fault[]>> = {
  TollbookDown: [
    {
      what: 'a gateway is killed',
      async begin(rig) {
        const { slot } = second(rig);
        await slot.pause();
        return async () => {
          slot.resume();
          await slot.untilUp();
        };
      },
    },
  ],
  TollbookFacilitatorDegraded: [
    ofPeer('facilitator', 'away', 'the facilitator is away', 'facilitator_trouble'),
    ofPeer('facilitator', 'silent', 'the facilitator never answers', 'facilitator_trouble'),
  ],
  TollbookRunnerPaused: [
    {
      what: 'a runner answers 410',
      own: 'runner_paused',
      labels: { runner: pushRunnerName },
      async begin(rig) {
        const end = await misbehave(rig.runner, () => 410);
        return async () => {
          await end();
          await operate(rig, 'runners', 'resume', pushRunnerName, '--by', 'drill');
        };
      },
    },
  ],
  TollbookCircuitOpen: [
    {
      what: 'the facilitator answers 500 to every payment',
      own: 'facilitator_trouble',
      async begin({ facilitator, customers }) {
        const end = await misbehave(facilitator, (path) => (path === '/supported' ? 'well' : 500));
        const leave = repeat(300, () => customers.buy(1));
        return async () => {
          await leave();
          await end();
        };
      },
    },
  ],
  TollbookChainDown: [
    ofPeer('chain', 'away', "the chain's RPC is away", 'chain_trouble', { network: 'eip155:84532' }),
    ofPeer('chain', 'silent', "the chain's RPC never answers", 'chain_trouble', { network: 'eip155:84532' }),
  ],
  TollbookRateNotCurrent: [
    ofPeer('rates', 'away', "the only source of a token's rate is away", 'no_current_rate', {
      symbol: 'EURC',
    }),
    ofPeer('rates', 'silent', "the only source of a token's rate never answers", 'no_current_rate', {
      symbol: 'EURC',
    }),
  ],
  TollbookListingGone: [
    {
      what: 'the discovery service does not list a job any more',
      own: 'listing_gone',
      labels: { service: '1' },
      async begin(rig) {
        // it is gone only if it was listed before
        await lookNow(rig);
        await sleep(betweenLooksMs);
        rig.discovery.isListed = false;
        const end = repeat(betweenLooksMs, () => lookNow(rig));
        return async () => {
          await end();
          rig.discovery.isListed = true;
          await lookNow(rig);
        };
      },
    },
  ],
  TollbookTriggerBehind: [
    ofPeer('chain', 'away', 'the RPC whose events a trigger follows is away', 'trigger_behind', {
      trigger: followingTrigger,
    }),
  ],
  TollbookDiscoveryUnknown: [
    {
      what: 'the discovery service is unreachable',
      own: 'discovery_unknown',
      async begin(rig) {
        const back = await misbehave(rig.discovery.peer, () => 'away');
        const end = repeat(betweenLooksMs, () => lookNow(rig));
        return async () => {
          await end();
          await back();
          await lookNow(rig);
        };
      },
    },
  ],
  TollbookSettlementsUnknown: [
    {
      what: 'settling is never answered, and the chain is unreachable',
      async begin({ facilitator, chain, customers }) {
        const ends = [
          await misbehave(facilitator, (path) => (path === '/settle' ? 'late' : 'well')),
          await misbehave(chain, () => 'away'),
        ];
        await customers.buy(1);
        return async () => {
          for (const end of ends) await end();
        };
      },
    },
  ],
  TollbookCallsWaiting: [
    {
      what: 'the runner of a sold call fetches nothing',
      own: 'calls_waiting',
      labels: { service: '2', runner: 'runner-2' },
      async begin({ stopPoller, startPoller, customers }) {
        await stopPoller();
        // one to each gateway, of which the first may be busy
        await customers.buy(2);
        await customers.buy(2);
        return async () => startPoller();
      },
    },
  ],
  TollbookDeliveriesFailing: [
    ofPeer('runner', 'away', 'the runner that calls are pushed to is away', 'deliveries_failing', {
      service: '1',
      runner: pushRunnerName,
    }),
    ofPeer('runner', 500, 'the runner that calls are pushed to answers 500', 'deliveries_failing', {
      service: '1',
      runner: pushRunnerName,
    }),
  ],
  TollbookDeadLetters: [
    {
      what: 'a runner refuses its calls',
      own: 'dead_letters',
      async begin(rig) {
        const end = await misbehave(rig.runner, () => 400);
        return async () => {
          await end();
          // those too that were refused meanwhile
          await sleep(1_000);
          await operate(rig, 'calls', 'requeue', '--all');
        };
      },
    },
  ],
  TollbookModelDown: [
    ofPeer('upstream', 'away', "a model's only upstream is away", undefined),
    ofPeer('upstream', 'silent', "a model's only upstream never answers", undefined),
  ],
  TollbookEtherLow: [
    {
      what: "the operator's key has no ether",
      own: 'low_gas',
      labels: { purpose: 'spends' },
      begin: (rig) => impoverish(rig, devnetKeys.operator),
    },
    {
      what: 'the key of an anchor on a chain has no ether',
      own: 'low_gas',
      labels: { purpose: 'anchor contract' },
      begin: (rig) => impoverish(rig, anchorKey),
    },
  ],
  TollbookAnchorBehind: [
    {
      what: 'the folder of an anchor takes no file for six minutes',
      own: 'anchors_behind',
      labels: { anchor: 'copies' },
      async begin({ anchorFolder, databaseUrl }) {
        const kept = `${anchorFolder}.kept`;
        renameSync(anchorFolder, kept);
        writeFileSync(anchorFolder, 'no folder');
        // its customers are served on; the checkpoints that they need become six minutes old
        await sleep(3_000);
        await withOwner(databaseUrl(), (owner) =>
          // past the trigger that refuses it
          owner.query(`set session_replication_role = replica; update tollbook.log_head set at = at - interval '6 minutes'
            where size > (select max(size) from tollbook.log_anchor where name = 'copies')`),
        );
        return async () => {
          rmSync(anchorFolder);
          renameSync(kept, anchorFolder);
        };
      },
    },
  ],
  TollbookSealerBehind: [
    {
      what: 'a lock keeps the sealers from the tree',
      begin: (rig) => lock(rig, 'tollbook.log_tree', 'exclusive'),
    },
  ],
  TollbookClockOff: [
    {
      what: 'the clock of a gateway is ten seconds fast',
      own: 'clock_trouble',
      async begin(rig) {
        const { clockFile } = second(rig);
        writeFileSync(clockFile, '10');
        return async () => writeFileSync(clockFile, '0');
      },
    },
  ],
  TollbookAppendsSlow: [
    {
      what: 'each append of a gateway takes one and a half seconds',
      async begin(rig) {
        const { wire } = second(rig);
        wire.appendsLateMs = 1_500;
        return async () => void (wire.appendsLateMs = 0);
      },
    },
  ],
  TollbookEventLoopSlow: [
    {
      what: 'a gateway stands still for most of each second',
      async begin(rig) {
        const { slot } = second(rig);
        const thaw = repeat(900, async () => slot.freeze(620));
        return async () => {
          await thaw();
          slot.thaw();
        };
      },
    },
  ],
  TollbookDatabaseConnectionsAwaited: [
    {
      what: 'the database answers no question, and customers ask on',
      async begin(rig) {
        const { wire, slot } = second(rig);
        wire.isSilent = true;
        const limitMs = 5_000;
        const ask = (): Promise<unknown> =>
          fetch(`${slot.url}/x402/stats`, { signal: AbortSignal.timeout(limitMs) })
            .then((response) => response.arrayBuffer())
            .catch(() => undefined);
        const leave = repeat(500, async () => void Array.from({ length: 20 }, () => void ask()));
        return async () => {
          await leave();
          wire.isSilent = false;
        };
      },
    },
  ],
  TollbookFiguresOld: [
    {
      what: 'a lock keeps the gateways from reading the holds',
      labels: { part: 'holds' },
      begin: (rig) => lock(rig, 'tollbook.chat_hold', 'access exclusive'),
    },
  ],
  TollbookQuiet: [
    {
      what: 'a gateway was started with --quiet',
      async begin(rig) {
        const { slot } = second(rig);
        await slot.pause();
        const quiet = await startGuardedChild({
          args: ['src/app/cli/tollbook.ts', 'serve', '--config', slot.configFile, '--quiet'],
          cwd: repositoryRoot,
          env: { DATABASE_URL: rig.databaseUrl(), ...gatewaySecrets },
        });
        return async () => {
          quiet.signal('SIGTERM');
          await quiet.ended;
          slot.resume();
          await slot.untilUp();
        };
      },
    },
  ],
  TollbookLedgerUnreachable: [
    {
      what: 'a gateway has no way to the database',
      async begin(rig) {
        const { wire } = second(rig);
        wire.block();
        return async () => wire.open();
      },
    },
    {
      what: 'the database can only be read',
      own: 'appends_refused',
      async begin(rig) {
        await setReadOnly(rig, true);
        return () => setReadOnly(rig, false);
      },
    },
  ],
  TollbookLedgerHalted: [
    { what: 'a restored backup lacks the last events', own: 'ledger_inconsistent', begin: loseEvents },
  ],
};
