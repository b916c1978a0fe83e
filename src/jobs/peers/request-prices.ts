import { z } from 'zod';
import { jobPrice } from '../../base/config/values.ts';
import { createHttpPool, type HttpPool } from '../../base/peers/http/http.ts';
import { createPlaces } from '../../base/runtime/places.ts';
import type { JobPrice } from '../../base/values/amount.ts';
import { createBoundedCache } from '../../base/values/bounded-cache.ts';

export type PriceAnswer =
  | { readonly kind: 'price'; readonly price: JobPrice }
  /** `reason`: machine-readable. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** Nothing can be bought by this request: why, for a person. */
  | { readonly kind: 'refused'; readonly why: string };

/** What is asked in place of a service: by the name that a configuration has in place of its URL. */
export type OwnPrices = Readonly<Record<string, (body: Buffer) => PriceAnswer>>;

export interface RequestPrices {
  /**
   * Asks a seller's service what a request costs, or repeats what it said to the same question shortly before. Never rejects.
   * @param question JSON
   * @param client the key of its budget; `onAsked` is called where the service is asked; `body`: of its request
   */
  ask(
    url: string,
    question: string,
    client: { readonly key: string; readonly body: Buffer; onAsked(): void },
  ): Promise<PriceAnswer>;
  close(): Promise<void>;
}

/** A request waits for its price before it is offered anything. */
const timeoutMs = 2_000;
/** Shorter than any price stands in an offer. */
const keptMs = 10_000;
const mostKept = 4_096;
const most = { inAll: 64, perClient: 16 };
const maxAnswerBytes = 4_096;

const answered = z.object({ price: jobPrice });

/** @param now a clock that never goes back, in milliseconds */
export function createRequestPrices(
  own: OwnPrices = {},
  now: () => number = () => performance.now(),
): RequestPrices {
  const pools = new Map<string, HttpPool>();
  const places = createPlaces();
  const kept = createBoundedCache<
    string,
    { readonly answer: Promise<PriceAnswer>; readonly endsAtMs: number }
  >(mostKept);

  const request = async (url: string, question: string): Promise<PriceAnswer> => {
    const { origin, pathname, search } = new URL(url);
    const pool = pools.get(origin) ?? createHttpPool(origin, { connections: most.inAll });
    pools.set(origin, pool);
    const answer = await pool.request({
      method: 'POST',
      path: `${pathname}${search}`,
      headers: { 'content-type': 'application/json' },
      body: question,
      timeoutMs,
      maxResponseBytes: maxAnswerBytes,
    });
    if (answer.kind === 'failed') return { kind: 'unavailable', reason: `price_${answer.cause}` };
    if (answer.status !== 200) return { kind: 'unavailable', reason: `price_status_${answer.status}` };
    return readAnswer(answer.body);
  };

  return {
    async ask(url, question, { key, body, onAsked }) {
      const ownPrice = own[url];
      if (ownPrice) return ownPrice(body);
      const asked = `${url} ${question}`;
      const known = kept.get(asked);
      if (known && known.endsAtMs > now()) return known.answer;
      const leave = places.take([
        ['', most.inAll],
        [key, most.perClient],
      ]);
      if (!leave) return { kind: 'unavailable', reason: 'price_busy' };
      onAsked();
      const answer = request(url, question).finally(leave);
      kept.set(asked, { answer, endsAtMs: now() + keptMs });
      const { kind } = await answer;
      if (kind !== 'price') kept.delete(asked);
      return answer;
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.abort()));
    },
  };
}

function readAnswer(body: Buffer): PriceAnswer {
  try {
    const read = answered.safeParse(JSON.parse(body.toString('utf8')));
    if (read.success) return { kind: 'price', price: read.data.price };
  } catch {
    // not JSON
  }
  return { kind: 'unavailable', reason: 'price_malformed' };
}
