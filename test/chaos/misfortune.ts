import { setTimeout as sleep } from 'node:timers/promises';
import { drawFault, type Fault, type Place } from './faults.ts';
import type { Random } from './random.ts';
import type { Strike } from './schedule.ts';
import type { Step } from './steps.ts';

/** What goes wrong in one run. Until it is over; then everything is well, and what was held back goes on. */
export interface Misfortune {
  /** The fault of the next operation at a place. */
  draw(place: Place): Fault;
  /** How many operations at a place had their fault drawn. */
  drawn(place: Place): number;
  /** What strikes whoever is at this step now. */
  strike(step: Step): Strike | undefined;
  /** Waits, but no longer than the misfortune lasts. */
  pause(ms: number): Promise<void>;
  /** Notes what happened, for the summary and for whoever looks at a violation. */
  note(what: string, about?: string): void;
  /** Only for the latter. */
  remark(words: string): void;
  readonly over: AbortSignal;
  end(): void;
  /** How often each thing happened. */
  readonly counts: ReadonlyMap<string, number>;
  readonly diary: readonly string[];
}

const fine: Fault = { kind: 'none', ms: 0 };

export function createMisfortune(random: Random, strikes: readonly Strike[]): Misfortune {
  const over = new AbortController();
  const places = new Map<Place, Random>();
  const operations = new Map<Place, number>();
  const reached = new Map<Step, number>();
  const counts = new Map<string, number>();
  const diary: string[] = [];
  const startedAt = performance.now();

  const randomOf = (place: Place): Random => {
    const known = places.get(place) ?? random.fork(place);
    places.set(place, known);
    return known;
  };
  const remark = (words: string): void => {
    diary.push(`${String(Math.round(performance.now() - startedAt)).padStart(6)} ms  ${words}`.trimEnd());
  };
  const note = (what: string, about = ''): void => {
    counts.set(what, (counts.get(what) ?? 0) + 1);
    remark(`${what} ${about}`);
  };

  return {
    draw(place) {
      if (over.signal.aborted) return fine;
      operations.set(place, (operations.get(place) ?? 0) + 1);
      return drawFault(randomOf(place), place);
    },
    drawn: (place) => operations.get(place) ?? 0,
    strike(step) {
      if (over.signal.aborted) return undefined;
      const times = (reached.get(step) ?? 0) + 1;
      reached.set(step, times);
      return strikes.find((strike) => strike.step === step && strike.nth === times);
    },
    async pause(ms) {
      await sleep(ms, undefined, { signal: over.signal }).catch(() => {});
    },
    note,
    remark,
    over: over.signal,
    end: () => over.abort(),
    counts,
    diary,
  };
}
