import { pagesRoutes } from '../pages/routes.ts';
import { readAssets } from '../pages/assets.ts';
import type { Site } from '../pages/site.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';

/** The customers' pages. */
export async function composePages(
  { publicUrl, bodies }: Pick<FeatureParts, 'publicUrl' | 'bodies'>,
  parts: Pick<Site, 'settings' | 'identity' | 'auth' | 'chat'>,
): Promise<RunningFeature> {
  const site: Site = { ...parts, publicUrl, assets: await readAssets() };
  return {
    async register(app) {
      await app.register(pagesRoutes(site, bodies));
    },
  };
}
