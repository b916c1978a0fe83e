import type { LogConfig } from '../../../base/config/config.ts';
import { noteSigner, type NoteSigner } from '../../../base/values/log/checkpoint.ts';
import { mapSecrets } from '../../../base/values/rotating-secret.ts';

/** The keys that sign the checkpoints of a log, under the name of its first generation. */
export function signerOf({ origin, seeds }: LogConfig): NoteSigner {
  return noteSigner(
    origin,
    mapSecrets(seeds, (seedHex) => Buffer.from(seedHex, 'hex')),
  );
}
