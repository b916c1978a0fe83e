/** What is sold, the same on every server: at most a cent, of which a third is used. In atoms of a dollar. */
export const uptoTerms = {
  most: '10000',
  used: '3000',
  mostUsd: '0.01 USD',
  usedUsd: '0.003 USD',
  answer: { city: 'Reykjavík', celsius: -4 },
} as const;

export const uptoRoutes = ['exact', 'upto'] as const;
export type UptoRoute = (typeof uptoRoutes)[number];
