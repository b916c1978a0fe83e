import type pg from 'pg';
import { withAnchors } from '../use-cases/log/configured-log.ts';
import type { Config } from '../../base/config/config.ts';
import type { NoteSigner } from '../../base/values/log/checkpoint.ts';
import { currentSigner, sealAndPublish } from '../use-cases/log/anchors.ts';
import { fail, say } from '../../base/terminal/terminal.ts';

/** Publishes the first checkpoint of the log's new name: from now on a database that was given up cannot start any more. */
export async function publishFirstCheckpoint(
  pool: pg.Pool,
  config: Pick<Config, 'log'>,
  signer: NoteSigner,
): Promise<void> {
  const { name, verifierKeys } = await currentSigner(pool, signer);
  say(`The log is called ${name} from now on. Auditors need its public key: ${verifierKeys.join(' and ')}`);
  const everyEvents = config.log?.sealEveryEvents ?? 1;
  const results = await withAnchors(config.log, (all) => sealAndPublish(pool, signer, everyEvents, all));
  for (const result of results)
    if (result.kind === 'failed' || result.kind === 'unverifiable')
      fail(`${result.anchor} did not take its first checkpoint: ${result.cause}`);
}
