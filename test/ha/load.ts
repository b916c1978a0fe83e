import type { PaymentNetwork } from '../chaos/environment.ts';
import type { Random } from '../chaos/random.ts';
import type { Records } from '../chaos/records.ts';
import { payOnce } from '../chaos/scenario-parts.ts';
import { jobs } from '../chaos/schedule.ts';
import { repeatUntil } from '../chaos/until.ts';

export interface Load {
  /** When each gateway first answered 202 after a time, in milliseconds of this machine's clock. */
  acceptedAfter(since: number): (number | undefined)[];
  /** The longest time within this range in which one of the gateways answered no 202. */
  longestPauseMs(from: number, to: number): number;
  readonly accepted: number;
  /** Starts no further payments, and resolves when each that was sent has its answer. */
  stop(timeoutMs: number): Promise<void>;
}

export interface LoadOptions {
  readonly urls: readonly string[];
  readonly network: PaymentNetwork;
  readonly records: Records;
  readonly clients: number;
  readonly random: Random;
}

/** Clients that pay, each for one job after the other, and repeat a payment until its answer is definite. */
export function startLoad({ urls, network, records, clients, random }: LoadOptions): Load {
  const deadline = new AbortController();
  const stopping = new AbortController();
  const parts = {
    urls,
    environment: network,
    records,
    asking: AbortSignal.any([deadline.signal, stopping.signal]),
    deadline: deadline.signal,
  };
  const running = Promise.all(
    Array.from({ length: clients }, (_, index) => {
      const id = `client ${index}`;
      const draw = random.fork(id);
      return repeatUntil(
        stopping.signal,
        () => draw.between(100, 500),
        () => {
          const { path } = draw.pick([jobs.pushed, jobs.leased]);
          const request = { path, body: `${id} ${draw.hex32()}`, headers: {} };
          const option = draw.pick([0, 1] as const);
          const scenario = { id, kind: 'honest', option, version: 2 } as const;
          return payOnce({ parts, scenario, random: draw, request });
        },
      );
    }),
  );
  // a rejection is reported by stop()
  running.catch(() => {});
  /** When each gateway answered 202, in this order. */
  const accepted = (): number[][] =>
    urls.map((url) => {
      const last = records.presentations.flatMap(({ attempts }) => attempts.at(-1) ?? []);
      const ended = last.filter(({ status, gateway }) => status === 202 && gateway === url);
      return ended.map(({ endedAt }) => endedAt).toSorted((a, b) => a - b);
    });

  return {
    acceptedAfter: (since) => accepted().map((times) => times.find((time) => time >= since)),
    longestPauseMs: (from, to) =>
      Math.max(
        ...accepted().map((times) => {
          const ends = [...times.filter((time) => time > from && time < to), to];
          return Math.max(...ends.map((end, index) => end - (ends[index - 1] ?? from)));
        }),
      ),
    get accepted() {
      return accepted().flat().length;
    },
    async stop(timeoutMs) {
      stopping.abort();
      const timer = setTimeout(() => deadline.abort(), timeoutMs);
      await running;
      clearTimeout(timer);
    },
  };
}
