import { drawFault, type Fault, type FaultKind, type Place } from './faults.ts';
import type { Random } from './random.ts';
import type { Schedule, Strike } from './schedule.ts';
import type { Step } from './steps.ts';
import { pause } from './until.ts';

/** Decides the faults of one run. After `end()` there are no further faults, and delayed messages continue. */
export interface FaultInjector {
  /** The fault of the next operation at a place; after `end()` only if it is one of the `lasting` kinds, which keep nothing from ending. */
  draw(place: Place, lasting?: readonly FaultKind[]): Fault;
  /** The number of operations at a place so far. */
  drawn(place: Place): number;
  /** The strike that is scheduled for this occurrence of a step. */
  takeStrike(step: Step): Strike | undefined;
  /** The gateways are up and clients start: outages are counted from here. */
  beginLoad(): void;
  /** Whether the chain's node cannot be reached. */
  isRpcOut(): boolean;
  /** Waits, but not beyond `end()`. */
  pause(ms: number): Promise<void>;
  /** Counts an occurrence for the summary and adds it to the trace. */
  count(kind: string, details?: string): void;
  /** Adds a line to the trace only. */
  trace(text: string): void;
  readonly over: AbortSignal;
  end(): void;
  /** Occurrences by kind. */
  readonly counts: ReadonlyMap<string, number>;
  readonly traceLines: readonly string[];
}

const noFault: Fault = { kind: 'none', ms: 0 };

export function createFaultInjector(
  random: Random,
  { strikes, outages, isSiege }: Pick<Schedule, 'strikes' | 'outages' | 'isSiege'>,
): FaultInjector {
  const over = new AbortController();
  const places = new Map<Place, Random>();
  const operations = new Map<Place, number>();
  const reached = new Map<Step, number>();
  const counts = new Map<string, number>();
  const traceLines: string[] = [];
  const startedAt = performance.now();
  let loadStartedAt: number | undefined;

  const randomOf = (place: Place): Random => {
    const known = places.get(place) ?? random.fork(place);
    places.set(place, known);
    return known;
  };
  const trace = (text: string): void => {
    traceLines.push(`${String(Math.round(performance.now() - startedAt)).padStart(6)} ms  ${text}`.trimEnd());
  };
  const count = (kind: string, details = ''): void => {
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    trace(`${kind} ${details}`);
  };

  return {
    draw(place, lasting = []) {
      if (over.signal.aborted && lasting.length === 0) return noFault;
      operations.set(place, (operations.get(place) ?? 0) + 1);
      if (isSiege) return noFault;
      const fault = drawFault(randomOf(place), place);
      return over.signal.aborted && !lasting.includes(fault.kind) ? noFault : fault;
    },
    drawn: (place) => operations.get(place) ?? 0,
    takeStrike(step) {
      if (over.signal.aborted) return undefined;
      const times = (reached.get(step) ?? 0) + 1;
      reached.set(step, times);
      return strikes.find((strike) => strike.step === step && strike.nth === times);
    },
    beginLoad: () => void (loadStartedAt = performance.now()),
    isRpcOut() {
      if (loadStartedAt === undefined) return false;
      const ms = performance.now() - loadStartedAt;
      return !over.signal.aborted && outages.some(({ atMs, forMs }) => ms >= atMs && ms < atMs + forMs);
    },
    pause: (ms) => pause(ms, over.signal),
    count,
    trace,
    over: over.signal,
    end: () => over.abort(),
    counts,
    traceLines,
  };
}
