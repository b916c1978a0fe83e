/** The parts of the pages, in the order of the navigation. */
export const sections = {
  home: { path: '/', label: 'Overview' },
  keys: { path: '/keys', label: 'Keys' },
  usage: { path: '/usage', label: 'Usage' },
  credit: { path: '/credit', label: 'Credit' },
  account: { path: '/account', label: 'Account' },
} as const;

export type SectionName = keyof typeof sections;
