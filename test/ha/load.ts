import { setTimeout as sleep } from 'node:timers/promises';
import { signOffer } from '../support/payer.ts';
import { askForOffer, paymentHeader, present } from '../chaos/client.ts';
import type { PaymentNetwork } from '../chaos/environment.ts';
import type { Random } from '../chaos/random.ts';
import type { Presentation, Records } from '../chaos/records.ts';
import { jobs } from '../chaos/schedule.ts';

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

/** Between two payments of one client. */
const pauseMs = { from: 100, to: 500 } as const;

/** Clients that pay, each for one job after the other, and repeat a payment until its answer is definite. */
export function startLoad({ urls, network, records, clients, random }: LoadOptions): Load {
  const deadline = new AbortController();
  const stopping = new AbortController();
  const accepted = new Map<string, number[]>(urls.map((url) => [url, []]));

  const payOnce = async (name: string, draw: Random): Promise<void> => {
    const body = `${name} ${draw.hex32()}`;
    const { path } = draw.pick([jobs.pushed, jobs.leased]);
    const request = { path, body, headers: {} };
    const asking = AbortSignal.any([deadline.signal, stopping.signal]);
    const offer = await askForOffer({ urls, deadline: asking }, draw, request);
    if (!offer) return;
    const payment = await signOffer(offer, {
      account: draw.pick(network.payers),
      option: draw.between(0, 1),
      signed: { nonce: draw.hex32() },
    });
    const signed = records.add(payment);
    const presentation: Presentation = {
      scenario: name,
      signed,
      version: 2,
      path,
      body,
      attempts: [],
      end: 'unanswered',
    };
    records.presentations.push(presentation);
    const headers = paymentHeader(signed, 2);
    await present({ urls, deadline: deadline.signal }, draw, { ...request, headers }, presentation);
    const last = presentation.attempts.at(-1);
    if (last?.status === 202) accepted.get(last.gateway)?.push(last.endedAt);
  };

  const run = async (name: string, draw: Random): Promise<void> => {
    while (!stopping.signal.aborted) {
      await payOnce(name, draw);
      await sleep(draw.between(pauseMs.from, pauseMs.to), undefined, { signal: stopping.signal }).catch(
        () => {},
      );
    }
  };
  const running = Promise.all(
    Array.from({ length: clients }, (_, index) => run(`client ${index}`, random.fork(`client ${index}`))),
  );
  // a rejection is reported by stop()
  running.catch(() => {});

  return {
    acceptedAfter: (since) => [...accepted.values()].map((times) => times.find((time) => time >= since)),
    longestPauseMs: (from, to) =>
      Math.max(
        ...[...accepted.values()].map((times) => {
          const ends = [...times.filter((time) => time > from && time < to), to];
          return Math.max(...ends.map((end, index) => end - (ends[index - 1] ?? from)));
        }),
      ),
    get accepted() {
      return [...accepted.values()].reduce((sum, times) => sum + times.length, 0);
    },
    async stop(timeoutMs) {
      stopping.abort();
      const timer = setTimeout(() => deadline.abort(), timeoutMs);
      await running;
      clearTimeout(timer);
    },
  };
}
