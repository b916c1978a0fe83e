import path from 'node:path';
import { rmSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { hex32Of, paidJob } from '../../test/support/synthetic-ledger.ts';
import type { Lane } from '../../src/ledger/store/lane.ts';
import { type Measured, runLimited } from '../measured-command.ts';
import { median } from '../report.ts';
import type { Ledger } from '../ledger.ts';
import { eventsAJob, signer } from '../log-load.ts';
import type { AgedGateway } from './gateway.ts';
import { auditor } from './keys.ts';
import { type AgedLedger, besides, monthMs } from './make-ledger.ts';
import { startOf } from './open-items.ts';

/** One of the two ledgers, with everything that asks it. */
export interface Subject extends AgedLedger {
  readonly ledger: Ledger;
  readonly lane: Lane;
  readonly gateway: AgedGateway;
  /** Of the chain that its jobs were paid on. */
  readonly nodeUrl: string;
  readonly dir: string;
  /** The next job that is not in the ledger. */
  nextJob: number;
}

/** What one operation took. */
export interface Cost {
  /** Milliseconds; undefined: longer than a command may take. */
  readonly ms: number | undefined;
  /** Resident memory of a command at most. */
  readonly mebibytes?: number | undefined;
}

/** An operation of the list; `n` is another number at each call. */
export interface Operation {
  readonly name: string;
  readonly times: number;
  run(subject: Subject, n: number): Promise<Cost>;
}

/** The jobs that are looked up lie all over the ledger: the n-th is the same part of its age in both. */
const golden = 0.618_033_988_75;
const someJob = ({ jobs }: AgedLedger, n: number): number => Math.floor(((n * golden) % 1) * jobs);
const digestOf = (subject: Subject, n: number): string =>
  paidJob(someJob(subject, n), startOfJob(subject, n))[0]?.stream ?? '';
const startOfJob = (subject: Subject, n: number): { startMs: number } => ({
  startMs:
    subject.fromMs +
    Math.floor(someJob(subject, n) / besides) * ((subject.toMs - subject.fromMs) / subject.jobs) * besides,
});

function request(
  name: string,
  pathOf: (subject: Subject, n: number) => string,
  headersOf: (subject: Subject) => Readonly<Record<string, string>> = ({ gateway }) => gateway.operator,
): Operation {
  return {
    name,
    times: 150,
    async run(subject, n) {
      const url = subject.gateway.url + pathOf(subject, n);
      const start = performance.now();
      const answer = await fetch(url, { headers: headersOf(subject), redirect: 'manual' });
      const text = await answer.text();
      const ms = performance.now() - start;
      if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${text.slice(0, 300)}`);
      return { ms };
    },
  };
}

function command(
  name: string,
  argsOf: (subject: Subject, out: string) => readonly string[],
  {
    times = 3,
    limitSecs,
    code = 0,
  }: { readonly times?: number; readonly limitSecs: number; readonly code?: number },
): Operation {
  return {
    name,
    times,
    async run(subject) {
      const out = path.join(subject.dir, 'written');
      const env = { DATABASE_URL: subject.ledger.url };
      const measured: Measured | undefined = await runLimited(argsOf(subject, out), env, limitSecs, code);
      rmSync(out, { force: true });
      return { ms: measured && measured.secs * 1_000, mebibytes: measured?.mebibytes };
    },
  };
}

const timeOf = (ms: number): string => new Date(ms).toISOString();
/** The last whole month: of the same size in both ledgers. */
const month = ({ toMs }: AgedLedger): string[] => ['--from', timeOf(toMs - monthMs), '--to', timeOf(toMs)];

/** Commands that read as long as this are ended. */
export function operationsFor(limitSecs: number): readonly Operation[] {
  return [
    {
      name: 'append: a payment’s start and its settlement',
      times: 150,
      async run(subject) {
        const { start, settle } = startOf(subject.nextJob++);
        const began = performance.now();
        const started = await subject.lane.append(start);
        if (started.outcome !== 'ok' || started.call_id === null) throw new Error('not started');
        const { outcome } = await subject.lane.append(settle(started.call_id));
        const ms = performance.now() - began;
        if (outcome !== 'ok') throw new Error(`not settled: ${outcome}`);
        return { ms };
      },
    },
    request(
      'receipt of a payment',
      (subject, n) => `/x402/receipts/${digestOf(subject, n)}`,
      () => ({}),
    ),
    request('stats', () => '/x402/stats'),
    request(
      'audit: a payment with its history and proofs',
      (subject, n) => `/audit/payments/${digestOf(subject, n)}`,
    ),
    request('audit: the first 50 payments of a day', (subject, n) => {
      const { startMs } = startOfJob(subject, n);
      return `/audit/payments?limit=50&from=${timeOf(startMs)}&to=${timeOf(startMs + 86_400_000)}`;
    }),
    {
      name: 'audit: what happened to the payment of a transaction, in SQL',
      times: 150,
      async run({ ledger, ...subject }, n) {
        const transaction = hex32Of(`transaction ${someJob(subject, n)}`);
        const start = performance.now();
        const { rowCount } = await ledger.pool.query(
          'select event.* from audit.payments_by($1) payment cross join lateral audit.events_of(payment.quote) event',
          [transaction],
        );
        const ms = performance.now() - start;
        if (rowCount !== eventsAJob) throw new Error(`${rowCount} events of the payment of ${transaction}`);
        return { ms };
      },
    },
    request(
      'proof of an event',
      (subject, n) => `/log/proof?seq=${Math.floor(((n * golden) % 1) * subject.events) + 1}`,
    ),
    request('console: payments', () => '/console/payments'),
    request('console: books', () => '/console/books'),
    request('console: refunds due', () => '/console/books/refunds'),
    command(
      '`refunds due`, since an attestation',
      () => ['refunds', 'due', '--attested-by', auditor.verifierKeys[0]],
      { limitSecs },
    ),
    command('`aging`', () => ['aging'], { limitSecs }),
    command(
      '`aging` at the beginning of the last month',
      ({ toMs }) => ['aging', '--as-of', timeOf(toMs - monthMs)],
      { limitSecs },
    ),
    ...(['csv', 'hledger', 'summary'] as const).map((format) =>
      command(
        `\`export --format ${format}\` of a month`,
        (subject, out) => ['export', '--format', format, ...month(subject), '--out', out],
        { limitSecs },
      ),
    ),
    command(
      '`reconcile` of a month',
      (subject) => [
        'reconcile',
        ...month(subject),
        '--no-store',
        '--pubkey',
        signer.verifierKeys[0],
        '--rpc',
        `eip155:84532=${subject.nodeUrl}`,
      ],
      { times: 1, limitSecs },
    ),
    command('`verify`', () => ['verify'], { times: 1, limitSecs }),
  ];
}

/** Runs an operation on both ledgers in turn, after calls that are not counted. Medians; the most memory. */
export async function measureBoth(
  { run, times }: Operation,
  subjects: readonly [Subject, Subject],
): Promise<readonly [Cost, Cost]> {
  const costs: [Cost[], Cost[]] = [[], []];
  const warm = times > 10 ? 20 : 0;
  for (let n = 1; n <= warm + times; n++)
    for (const at of n % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      // what has taken too long once is not waited for again
      if (costs[at].some(({ ms }) => ms === undefined)) continue;
      const cost = await run(subjects[at], n);
      if (n > warm) costs[at].push(cost);
    }
  return [medianOf(costs[0]), medianOf(costs[1])];
}

function medianOf(costs: readonly Cost[]): Cost {
  const ended = costs.flatMap(({ ms }) => ms ?? []);
  const memory = costs.flatMap(({ mebibytes }) => mebibytes ?? []);
  return {
    ms: ended.length < costs.length ? undefined : median(ended),
    mebibytes: memory.length > 0 ? Math.max(...memory) : undefined,
  };
}
