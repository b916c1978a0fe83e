import type pg from 'pg';
import type { ChatStatus } from '../chat/use-cases/chat-status.ts';
import type { ListingStatus } from '../jobs/use-cases/listings.ts';
import type { RateStatus } from '../jobs/use-cases/rates.ts';
import type { JobsStatus, ReadJobs } from '../jobs/use-cases/jobs-status.ts';
import type { AnchorLag } from '../audit/use-cases/log/anchor-lag.ts';
import type { Figure, FigureValue } from '../ledger/metrics/metrics.ts';
import type { Funds } from '../payments/peers/chain/transaction-sender.ts';
import type { LastKnown } from '../base/runtime/last-known.ts';
import type { Backlog } from '../ledger/store/backlogs.ts';
import type { Lane } from '../ledger/store/lane.ts';
import type { FiringCounts } from '../jobs/use-cases/triggers/fire.ts';
import type { TriggerLag } from '../jobs/use-cases/triggers/progress.ts';

/** 1 for a working part. */
const flag = ({ ok }: { readonly ok: boolean }): number => (ok ? 1 : 0);

/** A figure without labels; missing while its value is unknown. */
function one(name: string, help: string, read: () => number | undefined): Figure {
  return {
    name,
    help,
    read() {
      const value = read();
      return value === undefined ? [] : [{ value }];
    },
  };
}

/** How old the values are that are read from the database in the background: a scrape waits for no database. */
function age(part: string, known: Pick<LastKnown<unknown>, 'ageSecs'>): Figure {
  return {
    name: 'tollbook_figures_age_seconds',
    help: 'How long ago the values of this part were read from the database; while it cannot be read, they stay as they were',
    labels: ['part'],
    read: () => [{ labels: { part }, value: known.ageSecs }],
  };
}

const oldestSecs = ({ value }: LastKnown<Backlog>): number | undefined => value && value.oldestMs / 1_000;

/** What every gateway knows about its ledger and its connections. */
export function ledgerFigures({ lane, pool }: { readonly lane: Lane; readonly pool: pg.Pool }): Figure[] {
  return [
    one(
      'tollbook_ledger_seq',
      'The last event of the ledger that this process knows of',
      () => lane.state.seq,
    ),
    one(
      'tollbook_ledger_halted',
      '1 while the ledger is not the one that was written: no payment is taken',
      () => (lane.state.halt ? 1 : 0),
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
    {
      name: 'tollbook_database_connections',
      help: 'Connections of the pool of this process, without those of the lane',
      labels: ['state'],
      read: () => [
        { labels: { state: 'idle' }, value: pool.idleCount },
        { labels: { state: 'in_use' }, value: pool.totalCount - pool.idleCount },
      ],
    },
    one(
      'tollbook_database_connections_awaited',
      'Queries that wait for a connection',
      () => pool.waitingCount,
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
  const known = <T extends { readonly serviceId: number }>(
    list: readonly T[] | undefined,
    valueOf: (of: T) => number,
  ): FigureValue[] =>
    (list ?? []).map((of) => ({
      labels: { service: String(of.serviceId), runner: runnersOf(read.value, of.serviceId) },
      value: valueOf(of),
    }));
  const labels = ['service', 'runner'];
  return [
    one(
      'tollbook_facilitator_circuit_open',
      '1 while the circuit breaker is open: no payment is started',
      () => (isCircuitOpen() ? 1 : 0),
    ),
    one('tollbook_facilitator_up', '1 while the facilitator answers and settles every accepted token', () =>
      flag(status().facilitator),
    ),
    {
      name: 'tollbook_chain_up',
      help: '1 while the RPC of this network answers for its chain',
      labels: ['network'],
      read: () =>
        Object.entries(status().chains).map(([network, check]) => ({
          labels: { network },
          value: flag(check),
        })),
    },
    {
      name: 'tollbook_calls_waiting',
      help: 'Calls that are due and not leased, or whose lease has ended, by service and its runners; at most 10,000, and 100,000 in all, are counted',
      labels,
      read: () => known(read.value?.queue.waiting, ({ calls }) => calls),
    },
    {
      name: 'tollbook_call_oldest_waiting_seconds',
      help: 'How long the oldest call that is due has waited, by service and its runners',
      labels,
      read: () => known(read.value?.queue.waiting, ({ oldestMs }) => oldestMs / 1_000),
    },
    {
      name: 'tollbook_calls_leased',
      help: 'Calls that a runner has now, by service and its runners',
      labels,
      read: () => known(read.value?.queue.deliveries, ({ leased }) => leased),
    },
    {
      name: 'tollbook_call_oldest_failing_seconds',
      help: 'How old the oldest call is whose last delivery failed, by service and its runners; 0 if there is none',
      labels,
      read: () => known(read.value?.queue.deliveries, ({ oldestFailingMs }) => oldestFailingMs / 1_000),
    },
    one(
      'tollbook_calls_dead',
      'Dead letters, which wait for an operator; at most 10,000 are counted',
      () => read.value?.queue.deadCalls,
    ),
    ...settlementFigures(read),
    ...callbackFigures(read),
    {
      name: 'tollbook_runner_paused',
      help: '1 while deliveries to this runner are paused',
      labels: ['runner'],
      read: () =>
        (read.value?.runners ?? []).flatMap(({ name, is_paused: isPaused }) =>
          isPaused === undefined ? [] : [{ labels: { runner: name }, value: isPaused ? 1 : 0 }],
        ),
    },
    one('tollbook_broker_up', '1 while the broker takes calls; missing if this process hands it none', () => {
      const { broker } = status();
      return broker && flag(broker);
    }),
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
  const labels = ['trigger', 'kind'];
  const figure = (name: string, help: string, valueOf: (lag: TriggerLag) => number | undefined): Figure => ({
    name,
    help,
    labels,
    read: () =>
      lags().flatMap((lag) => {
        const value = valueOf(lag);
        return value === undefined ? [] : [{ labels: { trigger: lag.name, kind: lag.kind }, value }];
      }),
  });
  return [
    figure(
      'tollbook_trigger_behind',
      '1 while this trigger is so late that its operator is alerted',
      ({ isBehind }) => (isBehind ? 1 : 0),
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
    {
      name: 'tollbook_trigger_firings_total',
      help: 'Firings of this process by trigger and outcome: recorded, known (recorded before), full (tried again), skipped (a missed time), foreign (a log of another event)',
      labels: ['trigger', 'outcome'],
      read: () =>
        counts.all().map(({ trigger, outcome, count }) => ({ labels: { trigger, outcome }, value: count })),
    },
    age('triggers', read),
  ];
}

function settlementFigures(read: JobsFigures['read']): Figure[] {
  return [
    one(
      'tollbook_settlements_open',
      'Settlements without a known outcome, of all processes',
      () => read.value?.queue.openSettlements.count,
    ),
    one(
      'tollbook_settlement_oldest_open_seconds',
      'How long ago the oldest settlement without a known outcome was started; 0 if there is none',
      () => read.value && read.value.queue.openSettlements.oldestMs / 1_000,
    ),
  ];
}

function callbackFigures(read: JobsFigures['read']): Figure[] {
  return [
    one(
      'tollbook_callbacks_due',
      'Callbacks that wait to be sent, for the first time or again; at most 10,000 are counted; missing if clients are not called back',
      () => read.value?.queue.dueCallbacks?.count,
    ),
    one(
      'tollbook_callback_oldest_due_seconds',
      'How old the oldest end of a call is whose callback waits to be sent; 0 if there is none',
      () => {
        const due = read.value?.queue.dueCallbacks;
        return due && due.oldestMs / 1_000;
      },
    ),
  ];
}

function rateFigures(rates: JobsFigures['rates']): Figure[] {
  return [
    {
      name: 'tollbook_rate_current',
      help: '0 while this token has no current rate and is not offered, or while its fixed rate is older than allowed',
      labels: ['network', 'symbol'],
      read: () =>
        rates().map(({ token, state }) => ({ labels: ofToken(token), value: state === 'current' ? 1 : 0 })),
    },
    {
      name: 'tollbook_rate_age_seconds',
      help: 'How long ago the rate of this token was observed: the oldest of its sources, or a fixed rate when it was seen first',
      labels: ['network', 'symbol'],
      read: () =>
        rates().flatMap(({ token, ageSecs }) =>
          ageSecs === undefined ? [] : [{ labels: ofToken(token), value: ageSecs }],
        ),
    },
  ];
}

function listingFigures(read: JobsFigures['listings']): Figure[] {
  return [
    {
      name: 'tollbook_listing_up',
      help: '0 while the discovery service does not list a job of this service any more; missing if it never listed one',
      labels: ['service'],
      read: () =>
        [...(read()?.services ?? [])].flatMap(([service, { listed, missed, gone }]) =>
          listed.length + missed.length + gone.length === 0
            ? []
            : [{ labels: { service: String(service) }, value: gone.length === 0 ? 1 : 0 }],
        ),
    },
    one(
      'tollbook_discovery_up',
      '0 while the looks at the discovery service are not conclusive, for longer than its grace; missing if none is watched',
      () => {
        const status = read();
        return status && flag({ ok: status.unknown === undefined });
      },
    ),
  ];
}

function ofToken({ network, symbol }: RateStatus['token']): Record<string, string> {
  return { network, symbol };
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
    {
      name: 'tollbook_model_up',
      help: '1 while an upstream of this model has a closed circuit',
      labels: ['model'],
      read: () =>
        Object.entries(status().models).map(([model, check]) => ({ labels: { model }, value: flag(check) })),
    },
    one(
      'tollbook_holds',
      'Completions under way that hold credit, of all processes',
      () => holds.value?.count,
    ),
    one(
      'tollbook_hold_oldest_seconds',
      'How long ago the oldest credit that is held was held; 0 if there is none',
      () => oldestSecs(holds),
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
  const labels = ['anchor'];
  const ofAnchors = (valueOf: (lag: AnchorLag) => number) => () =>
    [...(lags.value ?? [])].map(([anchor, lag]) => ({ labels: { anchor }, value: valueOf(lag) }));
  return [
    one('tollbook_log_unsealed_events', 'Events that no checkpoint covers yet', () => unsealed.value?.count),
    one(
      'tollbook_log_oldest_unsealed_seconds',
      'How old the oldest event is that no checkpoint covers yet; 0 if there is none',
      () => oldestSecs(unsealed),
    ),
    one('tollbook_log_seal_interval_seconds', 'How often a checkpoint is signed', () => sealEveryMs / 1_000),
    {
      name: 'tollbook_anchor_behind_events',
      help: 'Sealed events that the last checkpoint of this anchor does not cover',
      labels,
      read: ofAnchors(({ behindEvents }) => behindEvents),
    },
    {
      name: 'tollbook_anchor_behind_seconds',
      help: 'How old the oldest checkpoint is that this anchor has not taken; 0 if it has all',
      labels,
      read: ofAnchors(({ behindMs }) => behindMs / 1_000),
    },
    {
      name: 'tollbook_anchor_up',
      help: '1 while this anchor lacks no checkpoint that is older than its interval and five minutes',
      labels,
      read: ofAnchors(({ isLate }) => flag({ ok: !isLate })),
    },
    ...gasFigures(() => [...funds].map(([name, known]) => [`anchor ${name}`, known] as const)),
    age('log', unsealed),
    ...(hasAnchors ? [age('anchors', lags)] : []),
  ];
}

const weiPerEther = 1e18;

/** Of keys that pay for gas, by their chains' last answer, by purpose of the key. */
function gasFigures(read: () => readonly (readonly [key: string, known: Funds])[]): Figure[] {
  const labels = ['purpose'];
  return [
    {
      name: 'tollbook_gas_balance_ether',
      help: "Native currency of the gateway's key for this purpose",
      labels,
      read: () =>
        read().map(([purpose, { balanceWei }]) => ({
          labels: { purpose },
          value: Number(balanceWei) / weiPerEther,
        })),
    },
    {
      name: 'tollbook_gas_affordable_transactions',
      help: "How many transactions of this purpose the key's balance pays for at the present price of gas; at most a million",
      labels,
      read: () => read().map(([purpose, funds]) => ({ labels: { purpose }, value: affordable(funds) })),
    },
  ];
}

function affordable({ balanceWei, costWei }: Funds): number {
  const most = 1_000_000n;
  const count = costWei === 0n ? most : balanceWei / costWei;
  return Number(count < most ? count : most);
}
