import type { ChatStatus } from '../chat/use-cases/chat-status.ts';
import type { ListingStatus } from '../jobs/use-cases/listings.ts';
import type { RateStatus } from '../jobs/use-cases/rates.ts';
import type { JobsStatus, ReadJobs } from '../jobs/use-cases/jobs-status.ts';
import type { AnchorLag } from '../audit/use-cases/log/anchor-lag.ts';
import type { Figure } from '../ledger/metrics/metrics.ts';
import type { Funds } from '../payments/peers/chain/transaction-sender.ts';
import type { LastKnown } from '../base/runtime/last-known.ts';
import type { Backlog } from '../ledger/store/backlogs.ts';
import type { FiringCounts } from '../jobs/use-cases/triggers/fire.ts';
import type { TriggerLag } from '../jobs/use-cases/triggers/progress.ts';
import type { LedgerWriter } from '../ledger/store/ledger.ts';
import type { KnownReplica } from '../ledger/use-cases/replicas.ts';

/** A value; missing while it is unknown. A boolean is 1 or 0. */
type Value = number | boolean | undefined;
/** A value and its labels, in the order in which the figure names them. */
type Row = readonly [value: Value, ...labels: readonly string[]];

/** A figure with labels: one value for each row. */
function each(name: string, help: string, labels: readonly string[], rows: () => readonly Row[]): Figure {
  const labelled = (texts: readonly string[]) =>
    Object.fromEntries(labels.map((label, index) => [label, texts[index] ?? '']));
  return {
    name,
    help,
    labels,
    read: () =>
      rows().flatMap(([value, ...texts]) =>
        value === undefined ? [] : [{ labels: labelled(texts), value: Number(value) }],
      ),
  };
}

/** A figure without labels. */
function one(name: string, help: string, read: () => Value): Figure {
  return each(name, help, [], () => [[read()]]);
}

/** How old the values are that are read from the database in the background: a scrape waits for no database. */
function age(part: string, known: Pick<LastKnown<unknown>, 'ageSecs'>): Figure {
  return each(
    'tollbook_figures_age_seconds',
    'How long ago the values of this part were read from the database; while it cannot be read, they stay as they were',
    ['part'],
    () => [[known.ageSecs, part]],
  );
}

const oldestSecs = (backlog: Backlog | undefined): number | undefined => backlog && backlog.oldestMs / 1_000;

/** What every gateway knows about its ledger and its connections. */
export function ledgerFigures({ lane, pool }: LedgerWriter): Figure[] {
  return [
    one(
      'tollbook_ledger_seq',
      'The last event of the ledger that this process knows of',
      () => lane.state.seq,
    ),
    one(
      'tollbook_ledger_halted',
      '1 while the ledger is not the one that was written: no payment is taken',
      () => lane.state.halt !== undefined,
    ),
    one('tollbook_ledger_unreachable_seconds', 'For how long appends have failed; 0 while they work', () =>
      lane.state.brokenSince === undefined ? 0 : (Date.now() - lane.state.brokenSince) / 1_000,
    ),
    one(
      'tollbook_clock_offset_seconds',
      "The database's clock minus this process's",
      () => lane.state.clockOffsetMs / 1_000,
    ),
    one('tollbook_calls_open', 'Calls that wait or are leased, of all jobs', () => lane.state.openCalls),
    one(
      'tollbook_calls_unsettled',
      'Calls whose payment has no known outcome yet',
      () => lane.state.unsettledCalls,
    ),
    one(
      'tollbook_calls_triggered',
      'Calls that triggers made and that wait or are leased',
      () => lane.state.triggeredCalls,
    ),
    each(
      'tollbook_database_connections',
      'Connections of the pool of this process, without those of the lane',
      ['state'],
      () => [
        [pool.idleCount, 'idle'],
        [pool.totalCount - pool.idleCount, 'in_use'],
      ],
    ),
    one(
      'tollbook_database_connections_awaited',
      'Queries that wait for a connection',
      () => pool.waitingCount,
    ),
  ];
}

/** The values of the read replicas. */
export function replicaFigures(all: () => readonly KnownReplica[]): Figure[] {
  const figure = (name: string, help: string, valueOf: (replica: KnownReplica) => Value): Figure =>
    each(name, help, ['replica'], () => all().map((replica) => [valueOf(replica), replica.name]));
  return [
    figure(
      'tollbook_replica_used',
      '0 while this replica answers no reads: the primary does',
      ({ state }) => state.kind === 'fit',
    ),
    figure(
      'tollbook_replica_behind_seconds',
      'How far this replica was behind the primary at the last look; missing while it is not used',
      ({ state }) => (state.kind === 'fit' ? state.behindMs / 1_000 : undefined),
    ),
    each(
      'tollbook_replica_reads_total',
      'Reads that were given to this replica by outcome: answered, or failed (the primary answered)',
      ['replica', 'outcome'],
      () =>
        all().flatMap(({ name, answered, failed }): Row[] => [
          [answered, name, 'answered'],
          [failed, name, 'failed'],
        ]),
    ),
  ];
}

interface JobsFigures {
  readonly status: () => JobsStatus;
  readonly read: LastKnown<ReadJobs>;
  readonly isCircuitOpen: () => boolean;
  readonly rates: () => readonly RateStatus[];
  readonly listings: () => ListingStatus | undefined;
}

/** The values of paid jobs, from the last check of their status and of their calls. */
export function jobsFigures({ status, read, isCircuitOpen, rates, listings }: JobsFigures): Figure[] {
  const queue = () => read.value?.queue;
  const ofServices = <T extends { readonly serviceId: number }>(
    name: string,
    help: string,
    list: () => readonly T[] | undefined,
    valueOf: (of: T) => number,
  ): Figure =>
    each(name, help, ['service', 'runner'], () =>
      (list() ?? []).map((of) => [valueOf(of), String(of.serviceId), runnersOf(read.value, of.serviceId)]),
    );
  return [
    one(
      'tollbook_facilitator_circuit_open',
      '1 while the circuit breaker is open: no payment is started',
      isCircuitOpen,
    ),
    one(
      'tollbook_facilitator_up',
      '1 while every facilitator answers, and together they settle every accepted token',
      () => status().facilitator.ok,
    ),
    each('tollbook_chain_up', '1 while the RPC of this network answers for its chain', ['network'], () =>
      Object.entries(status().chains).map(([network, { ok }]) => [ok, network]),
    ),
    ofServices(
      'tollbook_calls_waiting',
      'Calls that are due and not leased, or whose lease has ended, by service and its runners; at most 10,000, and 100,000 in all, are counted',
      () => queue()?.waiting,
      ({ calls }) => calls,
    ),
    ofServices(
      'tollbook_call_oldest_waiting_seconds',
      'How long the oldest call that is due has waited, by service and its runners',
      () => queue()?.waiting,
      ({ oldestMs }) => oldestMs / 1_000,
    ),
    ofServices(
      'tollbook_calls_leased',
      'Calls that a runner has now, by service and its runners',
      () => queue()?.deliveries,
      ({ leased }) => leased,
    ),
    ofServices(
      'tollbook_call_oldest_failing_seconds',
      'How old the oldest call is whose last delivery failed, by service and its runners; 0 if there is none',
      () => queue()?.deliveries,
      ({ oldestFailingMs }) => oldestFailingMs / 1_000,
    ),
    one(
      'tollbook_calls_dead',
      'Dead letters, which wait for an operator; at most 10,000 are counted',
      () => queue()?.deadCalls,
    ),
    one(
      'tollbook_settlements_open',
      'Settlements without a known outcome, of all processes',
      () => queue()?.openSettlements.count,
    ),
    one(
      'tollbook_settlement_oldest_open_seconds',
      'How long ago the oldest settlement without a known outcome was started; 0 if there is none',
      () => oldestSecs(queue()?.openSettlements),
    ),
    one(
      'tollbook_callbacks_due',
      'Callbacks that wait to be sent, for the first time or again; at most 10,000 are counted; missing if clients are not called back',
      () => queue()?.dueCallbacks?.count,
    ),
    one(
      'tollbook_callback_oldest_due_seconds',
      'How old the oldest end of a call is whose callback waits to be sent; 0 if there is none',
      () => oldestSecs(queue()?.dueCallbacks),
    ),
    each('tollbook_runner_paused', '1 while deliveries to this runner are paused', ['runner'], () =>
      (read.value?.runners ?? []).map(({ name, is_paused: isPaused }) => [isPaused, name]),
    ),
    one(
      'tollbook_broker_up',
      '1 while the broker takes calls; missing if this process hands it none',
      () => status().broker?.ok,
    ),
    age('calls', read),
    ...rateFigures(rates),
    ...listingFigures(listings),
  ];
}

/** The values of triggers, from the last look at how far they are; those of their firings are of this process. */
export function triggerFigures(
  read: Pick<LastKnown<unknown>, 'ageSecs'>,
  counts: FiringCounts,
  lags: () => readonly TriggerLag[],
): Figure[] {
  const figure = (name: string, help: string, valueOf: (lag: TriggerLag) => Value): Figure =>
    each(name, help, ['trigger', 'kind'], () => lags().map((lag) => [valueOf(lag), lag.name, lag.kind]));
  return [
    figure(
      'tollbook_trigger_behind',
      '1 while this trigger is so late that its operator is alerted',
      ({ isBehind }) => isBehind,
    ),
    figure(
      'tollbook_trigger_lag_seconds',
      'How long ago the oldest time of a schedule was that has not fired; how old the block is up to which a chain was read',
      ({ lagSecs }) => lagSecs,
    ),
    figure(
      'tollbook_trigger_blocks_behind',
      'Blocks of a chain that count and were not read',
      ({ blocks }) => blocks,
    ),
    each(
      'tollbook_trigger_firings_total',
      'Firings of this process by trigger and outcome: recorded, known (recorded before), full (tried again), skipped (a missed time), foreign (a log of another event)',
      ['trigger', 'outcome'],
      () => counts.all().map(({ trigger, outcome, count }) => [count, trigger, outcome]),
    ),
    age('triggers', read),
  ];
}

function rateFigures(rates: JobsFigures['rates']): Figure[] {
  const figure = (name: string, help: string, valueOf: (rate: RateStatus) => Value): Figure =>
    each(name, help, ['network', 'symbol'], () =>
      rates().map((rate) => [valueOf(rate), rate.token.network, rate.token.symbol]),
    );
  return [
    figure(
      'tollbook_rate_current',
      '0 while this token has no current rate and is not offered, or while its fixed rate is older than allowed',
      ({ state }) => state === 'current',
    ),
    figure(
      'tollbook_rate_age_seconds',
      'How long ago the rate of this token was observed: the oldest of its sources, or a fixed rate when it was seen first',
      ({ ageSecs }) => ageSecs,
    ),
  ];
}

function listingFigures(read: JobsFigures['listings']): Figure[] {
  return [
    each(
      'tollbook_listing_up',
      '0 while the discovery service does not list a job of this service any more; missing if it never listed one',
      ['service'],
      () =>
        [...(read()?.services ?? [])].map(([service, { listed, missed, gone }]) => {
          const wasListed = listed.length + missed.length + gone.length > 0;
          return [wasListed ? gone.length === 0 : undefined, String(service)];
        }),
    ),
    one(
      'tollbook_discovery_up',
      '0 while the looks at the discovery service are not conclusive, for longer than its grace; missing if none is watched',
      () => {
        const status = read();
        return status && status.unknown === undefined;
      },
    ),
  ];
}

/** The names of the runners that take a service's calls; empty if the gateway works on them itself. */
function runnersOf(read: ReadJobs | undefined, serviceId: number): string {
  const own = (read?.runners ?? []).filter(({ services }) => services.includes(serviceId));
  return own.map(({ name }) => name).join(',');
}

interface ChatFigures {
  readonly status: () => ChatStatus;
  readonly holds: LastKnown<Backlog>;
  /** Of the operator's key; undefined if no spends are accepted. */
  readonly funds: () => Funds | undefined;
}

/** The values of chats, from the state of their upstreams. */
export function chatFigures({ status, holds, funds }: ChatFigures): Figure[] {
  return [
    each('tollbook_model_up', '1 while an upstream of this model has a closed circuit', ['model'], () =>
      Object.entries(status().models).map(([model, { ok }]) => [ok, model]),
    ),
    one(
      'tollbook_holds',
      'Completions under way that hold credit, of all processes',
      () => holds.value?.count,
    ),
    one(
      'tollbook_hold_oldest_seconds',
      'How long ago the oldest credit that is held was held; 0 if there is none',
      () => oldestSecs(holds.value),
    ),
    ...gasFigures(() => {
      const known = funds();
      return known ? [['spends', known]] : [];
    }),
    age('holds', holds),
  ];
}

interface LogFigures {
  readonly sealEveryMs: number;
  readonly hasAnchors: boolean;
  readonly lags: LastKnown<ReadonlyMap<string, AnchorLag>>;
  /** Events that no checkpoint covers. */
  readonly unsealed: LastKnown<Backlog>;
  /** Of the anchors' keys, by the anchor's name. */
  readonly funds: ReadonlyMap<string, Funds>;
}

/** The values of the log. */
export function logFigures({ sealEveryMs, hasAnchors, lags, unsealed, funds }: LogFigures): Figure[] {
  const ofAnchors = (name: string, help: string, valueOf: (lag: AnchorLag) => Value): Figure =>
    each(name, help, ['anchor'], () =>
      [...(lags.value ?? [])].map(([anchor, lag]) => [valueOf(lag), anchor]),
    );
  return [
    one('tollbook_log_unsealed_events', 'Events that no checkpoint covers yet', () => unsealed.value?.count),
    one(
      'tollbook_log_oldest_unsealed_seconds',
      'How old the oldest event is that no checkpoint covers yet; 0 if there is none',
      () => oldestSecs(unsealed.value),
    ),
    one('tollbook_log_seal_interval_seconds', 'How often a checkpoint is signed', () => sealEveryMs / 1_000),
    ofAnchors(
      'tollbook_anchor_behind_events',
      'Sealed events that the last checkpoint of this anchor does not cover',
      ({ behindEvents }) => behindEvents,
    ),
    ofAnchors(
      'tollbook_anchor_behind_seconds',
      'How old the oldest checkpoint is that this anchor has not taken; 0 if it has all',
      ({ behindMs }) => behindMs / 1_000,
    ),
    ofAnchors(
      'tollbook_anchor_up',
      '1 while this anchor lacks no checkpoint that is older than its interval and five minutes',
      ({ isLate }) => !isLate,
    ),
    ...gasFigures(() => [...funds].map(([name, known]) => [`anchor ${name}`, known] as const)),
    age('log', unsealed),
    ...(hasAnchors ? [age('anchors', lags)] : []),
  ];
}

const weiPerEther = 1e18;

/** Of keys that pay for gas, by their chains' last answer, by purpose of the key. */
function gasFigures(read: () => readonly (readonly [key: string, known: Funds])[]): Figure[] {
  const figure = (name: string, help: string, valueOf: (known: Funds) => Value): Figure =>
    each(name, help, ['purpose'], () => read().map(([purpose, known]) => [valueOf(known), purpose]));
  return [
    figure(
      'tollbook_gas_balance_ether',
      "Native currency of the gateway's key for this purpose",
      ({ balanceWei }) => Number(balanceWei) / weiPerEther,
    ),
    figure(
      'tollbook_gas_affordable_transactions',
      "How many transactions of this purpose the key's balance pays for at the present price of gas; at most a million",
      affordable,
    ),
  ];
}

function affordable({ balanceWei, costWei }: Funds): number {
  const most = 1_000_000n;
  const count = costWei === 0n ? most : balanceWei / costWei;
  return Number(count < most ? count : most);
}
