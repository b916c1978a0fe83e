import type pg from 'pg';
import type { LogConfig } from '../base/config/config.ts';
import { consoleRoutes } from '../web/console/console.ts';
import { sections } from '../web/console/sections.ts';
import type { ConsoleSite } from '../web/console/visit.ts';
import { signerIn } from '../base/values/log/log-generation.ts';
import { ownLogReader, ownLogReaders } from '../audit/use-cases/log/log-reader.ts';
import { type Assets, readAssets } from '../web/pages/assets.ts';
import { createLostPages } from '../web/pages/lost.ts';
import { pagesRoutes } from '../web/pages/routes.ts';
import type { Site } from '../web/pages/visit.ts';
import { readLogGeneration } from '../audit/store/log.ts';
import { signerOf } from '../audit/use-cases/log/configured-log.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';

/** The static files of all pages. */
export async function composeAssets(): Promise<{
  readonly assets: Assets;
  readonly feature: RunningFeature;
}> {
  const assets = await readAssets();
  return {
    assets,
    feature: {
      async register(app) {
        await app.register(assets.routes);
      },
    },
  };
}

type HostParts = Pick<FeatureParts, 'config' | 'ledger' | 'publicUrl' | 'bodies' | 'pageAddition'>;

type ConsoleParts = HostParts & Pick<FeatureParts, 'reads' | 'isStopping' | 'logger' | 'readConfig'>;

/** The customers' pages. */
export function composePages(
  { config, ledger, publicUrl, bodies, pageAddition: addition }: HostParts,
  parts: Pick<Site, 'settings' | 'identity' | 'auth' | 'chat' | 'completions' | 'jobs' | 'assets'>,
): RunningFeature {
  const site: Site = { ...parts, log: ownLogReader(ledger.pool, config.log), publicUrl, addition };
  const lost = createLostPages(site);
  return {
    problemPage: lost.answer,
    async register(app) {
      await app.register(pagesRoutes(site, bodies, lost));
    },
  };
}

/** As `tollbook log key` prints them. */
async function logKeys(pool: pg.Pool, log: LogConfig | undefined): Promise<readonly string[]> {
  if (!log) return [];
  const { generation } = await readLogGeneration(pool);
  return signerIn(signerOf(log), generation).verifierKeys;
}

/** The operators' console. */
export function composeConsole(
  { config, ledger, reads, bodies, publicUrl, pageAddition: addition, ...more }: ConsoleParts,
  parts: Pick<ConsoleSite, 'console' | 'identity' | 'auth' | 'chat' | 'jobs' | 'assets'>,
): RunningFeature {
  const { isStopping, logger, readConfig } = more;
  const logOn = ownLogReaders(config.log);
  const site: ConsoleSite = {
    ...parts,
    settings: { name: config.pages?.name ?? 'Tollbook' },
    hasCustomerPages: config.pages !== undefined,
    log: logOn(ledger.pool),
    logOn,
    logKeys: () => logKeys(ledger.pool, config.log),
    ledger,
    reads,
    publicUrl,
    isStopping,
    logger,
    readConfig,
    // the development wallet, which signs refunds
    addition,
    sections: sections.filter(({ isOffered }) => isOffered?.(parts) ?? true),
  };
  return {
    async register(app) {
      await app.register(consoleRoutes(site, bodies));
    },
  };
}
