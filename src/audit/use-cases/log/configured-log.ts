import type pg from 'pg';
import type { LogConfig } from '../../../base/config/config.ts';
import { type AnchorComparison, compareAnchors, currentVerifier } from './anchors.ts';
import type { Anchor } from '../../peers/anchors/anchor.ts';
import { createAnchor } from '../../peers/anchors/create-anchor.ts';
import { noteSigner, type NoteSigner } from '../../../base/values/log/checkpoint.ts';
import { mapSecrets } from '../../../base/values/rotating-secret.ts';

/** Opens the configured anchors for one use, and closes them. */
export async function withAnchors<T>(
  log: LogConfig | undefined,
  use: (anchors: readonly Anchor[]) => Promise<T>,
): Promise<T> {
  const anchors = (log?.anchors ?? []).map(createAnchor);
  try {
    return await use(anchors);
  } finally {
    await Promise.all(anchors.map((anchor) => anchor.close()));
  }
}

/** What the configured anchors say about the database; nothing if there is no log. */
export async function compareConfiguredAnchors(
  pool: pg.Pool,
  log: LogConfig | undefined,
): Promise<readonly AnchorComparison[]> {
  if (!log) return [];
  const verifier = await currentVerifier(pool, signerOf(log));
  return withAnchors(log, (anchors) => compareAnchors(pool, verifier, anchors));
}

/** The keys that sign the checkpoints of a log, under the name of its first generation. */
export function signerOf({ origin, seeds }: LogConfig): NoteSigner {
  return noteSigner(
    origin,
    mapSecrets(seeds, (seedHex) => Buffer.from(seedHex, 'hex')),
  );
}
