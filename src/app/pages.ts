import { ownLogReader } from '../log/log-reader.ts';
import { createLostPages } from '../pages/lost.ts';
import { pagesRoutes } from '../pages/routes.ts';
import { readAssets } from '../pages/assets.ts';
import type { Site } from '../pages/site.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';

/** The customers' pages. */
export async function composePages(
  {
    config,
    ledger,
    publicUrl,
    bodies,
    pageAddition: addition,
  }: Pick<FeatureParts, 'config' | 'ledger' | 'publicUrl' | 'bodies' | 'pageAddition'>,
  parts: Pick<Site, 'settings' | 'identity' | 'auth' | 'chat' | 'completions' | 'jobs'>,
): Promise<RunningFeature> {
  const log = ownLogReader(ledger.pool, config.log);
  const site: Site = { ...parts, log, publicUrl, assets: await readAssets(), addition };
  const lost = createLostPages(site);
  return {
    problemPage: lost.answer,
    async register(app) {
      await app.register(pagesRoutes(site, bodies, lost));
    },
  };
}
