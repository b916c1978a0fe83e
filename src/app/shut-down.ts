import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { late, within } from '../base/runtime/within.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';

/** How a gateway stopped. */
export interface Ending {
  /** Requests that had no answer when the grace period ended: their connections were closed. */
  readonly requestsCut: number;
  /** Payments and completions that were under way then. Another process, or the next start, finishes them. */
  readonly workLeft: number;
}

interface Parts {
  readonly graceMs: number;
  readonly app: FastifyInstance;
  readonly requests: { readonly open: number };
  readonly features: readonly RunningFeature[];
  /** Finished after the features, so that their last events are sealed and projected. */
  readonly recorders: readonly RunningFeature[];
  readonly loops: readonly Loop[];
  /** Without a lane, where nothing can be appended. */
  readonly ledger: Pick<FeatureParts['ledger'], 'pool'> & Partial<Pick<FeatureParts['ledger'], 'lane'>>;
  readonly logger: Logger;
  /** Open resources other than the ledger; closed once all else has ended. */
  readonly others: readonly ({ close(): Promise<void> } | undefined)[];
}

/** Finishes accepted requests for at most the grace period, stops the workers and closes every connection. */
export async function shutDownGateway(parts: Parts): Promise<Ending> {
  const { graceMs, app, requests, features, recorders, ledger, others } = parts;
  const graceEndsAt = Date.now() + graceMs;
  const finished = finish(parts);
  const isLate = (await within(graceMs - lastMomentMs(graceMs), finished)) === late;
  const ending = isLate ? endingOf(requests.open, features) : { requestsCut: 0, workLeft: 0 };
  for (const feature of features) feature.cutShort?.();
  await within(graceEndsAt - Date.now(), finished);
  // after the grace period, appends that still wait fail, so that everything can end
  await ledger.lane?.close(Math.max(0, graceEndsAt - Date.now()));
  app.server.closeAllConnections();
  await Promise.all([...features, ...recorders].map(async (part) => part.stop?.()));
  await Promise.all(others.map(async (other) => other?.close()));
  await ledger.pool.end();
  return ending;
}

async function finish({ app, features, recorders, loops, logger }: Parts): Promise<void> {
  try {
    await app.close();
    await Promise.all(features.map(async (feature) => feature.finish?.()));
    await Promise.all(recorders.map(async (recorder) => recorder.finish?.()));
    await Promise.all(loops.map((loop) => loop.stop()));
  } catch (err) {
    logger.error({ err }, 'the shutdown had an error');
  }
}

/** What is cut when the grace period ends. */
function endingOf(requestsCut: number, features: readonly RunningFeature[]): Ending {
  return { requestsCut, workLeft: features.reduce((sum, feature) => sum + (feature.underWay?.() ?? 0), 0) };
}

/** The part of the grace period that is kept for recording which requests were cut short. */
function lastMomentMs(graceMs: number): number {
  // the first estimate of tokens starts a thread
  return Math.min(5_000, graceMs / 4);
}
