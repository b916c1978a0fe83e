import type { Config } from '../../base/config/config.ts';

/** Where credit is bought, as the end of a sentence; undefined where the operator grants it alone. */
export function creditPlace({
  pages,
  topUps,
  publicUrl,
}: Pick<Config, 'pages' | 'topUps' | 'publicUrl'>): string | undefined {
  if (pages) return `${publicUrl}/credit`;
  const [topUp] = topUps;
  return topUp && `${publicUrl}/x402/jobs/${topUp.serviceId}/${topUp.jobIndex}`;
}
