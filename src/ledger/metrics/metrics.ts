import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { LaneObserver } from '../store/lane.ts';
import { createChatMetrics } from './chat-metrics.ts';
import type { LedgerEvent } from '../rules/event.ts';

type SettlementOutcome =
  | 'settled'
  | 'confirmed'
  | 'unknown'
  | 'failed'
  | 'disproved'
  | 'reorged'
  | 'resolved_by_operator';

const outcomes: Readonly<Partial<Record<LedgerEvent['type'], SettlementOutcome>>> = {
  payment_settled: 'settled',
  settlement_confirmed: 'confirmed',
  settlement_unknown: 'unknown',
  settlement_failed: 'failed',
  settlement_disproved: 'disproved',
  settlement_reorged: 'reorged',
  operator_settlement_resolved: 'resolved_by_operator',
};

/** What an event of this type says about a settlement; other types are missing. */
const settlementOutcomes: ReadonlyMap<string, string> = new Map(Object.entries(outcomes));

/** One measured value that is read when Prometheus asks. */
export interface Figure {
  /** With its unit, as Prometheus names metrics; a counter's ends in `_total`. */
  readonly name: string;
  readonly help: string;
  /** The names of its labels. Never a wallet, a digest or a key: each value is a time series for ever. */
  readonly labels?: readonly string[];
  /** From memory: a scrape waits for no peer and no database. */
  read(): Iterable<FigureValue>;
}

interface FigureValue {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A request that was answered. */
export interface AnsweredRequest {
  readonly method: string;
  /** The route's pattern; undefined if no route has the path. */
  readonly route: string | undefined;
  readonly status: number;
  readonly secs: number;
}

/** A request of this process to a peer. */
export interface PeerRequest {
  readonly peer: 'facilitator' | 'chain' | 'runner' | 'upstream' | 'client';
  /** Which of them, by its name in the configuration; left out if there is one. */
  readonly name?: string;
  readonly operation: string;
  /** From a closed list. */
  readonly outcome: string;
  readonly secs: number;
}

/** What this process measures about itself, for Prometheus. */
export interface Metrics {
  readonly lane: LaneObserver;
  requestAnswered(request: AnsweredRequest): void;
  peerAnswered(request: PeerRequest): void;
  /** Adds a value that is read at each scrape. Names are unique. */
  add(figure: Figure): void;
  /** In Prometheus' text format, and its content type. */
  text(): Promise<{ readonly body: string; readonly contentType: string }>;
}

/** Gauges of the library whose names are those of counters; reading them lists every open socket. */
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];
/** The boundaries that OpenTelemetry's semantic conventions give for the duration of HTTP requests. */
const httpSecs = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const appendSecs = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30];
const peerSecs = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const batchSizes = [1, 2, 4, 8, 16, 32, 64, 128];
/** Others are one value of the label, as OpenTelemetry has it: a client may invent methods. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** @param version of this program, for the metric `tollbook_build_info` */
export function createMetrics(version: string): Metrics {
  const registry = new Registry();
  const registers = [registry];
  // the process's CPU time, memory, garbage collections and event-loop delay
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);
  const requests = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Duration of answered HTTP requests',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: httpSecs,
    registers,
  });
  const peerRequests = new Histogram({
    name: 'tollbook_peer_request_duration_seconds',
    help: 'Duration of requests to peers, by peer, its name, operation and outcome',
    labelNames: ['peer', 'name', 'operation', 'outcome'],
    buckets: peerSecs,
    registers,
  });
  new Gauge({
    name: 'tollbook_build_info',
    help: 'Always 1; its labels say which program runs',
    labelNames: ['version', 'node_version'],
    registers,
  }).set({ version, node_version: process.versions.node }, 1);
  return {
    lane: createLaneMetrics(registers),
    requestAnswered({ method, route, status, secs }) {
      const known = knownMethods.has(method) ? method : '_OTHER';
      requests.observe(
        {
          http_request_method: known,
          http_route: route ?? '',
          http_response_status_code: String(status),
        },
        secs,
      );
    },
    peerAnswered({ secs, ...labels }) {
      peerRequests.observe(labels, secs);
    },
    add({ name, help, labels = [], read }) {
      const isCounter = name.endsWith('_total');
      const Kind = isCounter ? Counter : Gauge;
      const metric = new Kind({
        name,
        help,
        labelNames: [...labels],
        registers,
        collect() {
          // a label whose value no longer exists must not keep its last value, and a value that is unknown is not 0
          metric.reset();
          metric.remove({});
          for (const one of read()) metric.inc(one.labels ?? {}, one.value);
        },
      });
    },
    text: async () => ({ body: await registry.metrics(), contentType: registry.contentType }),
  };
}

function createLaneMetrics(registers: Registry[]): LaneObserver {
  const events = new Counter({
    name: 'tollbook_events_appended_total',
    help: 'Events that this process appended to the ledger, by type',
    labelNames: ['type'],
    registers,
  });
  const settlements = new Counter({
    name: 'tollbook_settlements_total',
    help: 'Outcomes of settlements that this process recorded',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of new Set(settlementOutcomes.values())) settlements.inc({ outcome }, 0);
  const sizes = new Histogram({
    name: 'tollbook_lane_batch_commands',
    help: 'Commands in a batch that the lane sent to the database',
    buckets: batchSizes,
    registers,
  });
  const durations = new Histogram({
    name: 'tollbook_lane_append_duration_seconds',
    help: 'From sending a batch to its durable answer, repetitions included',
    buckets: appendSecs,
    registers,
  });
  const waits = new Histogram({
    name: 'tollbook_lane_wait_duration_seconds',
    help: 'How long a command waited before its batch was sent',
    buckets: appendSecs,
    registers,
  });
  const chats = createChatMetrics(registers);
  return {
    batchAnswered(waitedMs, ms) {
      sizes.observe(waitedMs.length);
      durations.observe(ms / 1_000);
      for (const waited of waitedMs) waits.observe(waited / 1_000);
    },
    eventAppended(event) {
      const { type } = event;
      events.inc({ type });
      const outcome = settlementOutcomes.get(type);
      if (outcome !== undefined) settlements.inc({ outcome });
      if (event.type === 'chat_completed') chats.completed(event.data);
    },
  };
}
