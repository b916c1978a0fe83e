import type { Config } from '../../base/config/config.ts';

/**
 * Where credit is bought, as the end of a sentence; undefined where the operator grants it alone. The page credits the user who is signed in,
 * and a payment to the job that of the wallet: neither is for other accounts.
 */
export function creditPlace({
  pages,
  topUps,
  publicUrl,
}: Pick<Config, 'pages' | 'topUps' | 'publicUrl'>): string | undefined {
  const [topUp] = topUps;
  if (topUp && pages) return `${publicUrl}/credit`;
  return topUp && `${publicUrl}/x402/jobs/${topUp.serviceId}/${topUp.jobIndex}`;
}
