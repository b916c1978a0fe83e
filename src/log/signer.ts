import type { LogConfig } from '../config/config.ts';
import { noteSigner, type NoteSigner } from '../domain/log/checkpoint.ts';
import { mapSecrets } from '../domain/values/rotating-secret.ts';

/** The keys that sign the checkpoints of a log, under the name of its first generation. */
export function signerOf({ origin, seeds }: LogConfig): NoteSigner {
  return noteSigner(
    origin,
    mapSecrets(seeds, (seedHex) => Buffer.from(seedHex, 'hex')),
  );
}
