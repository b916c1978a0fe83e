import type { ChatContext } from './context.ts';

/**
 * How long at most a request waits for the first byte of an answer: until every upstream of a model was tried. The answer
 * itself may take longer, since a spend is paid out once its answer has begun.
 */
export function firstByteSecs({ settings, models }: Pick<ChatContext, 'settings' | 'models'>): number {
  const upstreams = new Map(settings.upstreams.map((upstream) => [upstream.name, upstream]));
  const waitsMs = [...models.values()].map(({ targets }) =>
    targets.reduce((sum, { upstream }) => {
      const { connectTimeoutMs = 0, firstByteTimeoutMs = 0 } = upstreams.get(upstream) ?? {};
      return sum + connectTimeoutMs + firstByteTimeoutMs;
    }, 0),
  );
  return Math.ceil(Math.max(0, ...waitsMs) / 1_000);
}
