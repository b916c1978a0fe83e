import { sellsModels, type Site } from './visit.ts';

/** The parts of the pages, in the order of the navigation. */
export const sections = {
  home: { path: '/', label: 'Overview' },
  try: { path: '/try', label: 'Chat' },
  keys: { path: '/keys', label: 'Keys' },
  usage: { path: '/usage', label: 'Usage' },
  credit: { path: '/credit', label: 'Credit' },
  jobs: { path: '/jobs', label: 'Jobs' },
  account: { path: '/account', label: 'Account' },
} as const;

const ofModels = new Set(['try', 'keys', 'usage', 'credit']);

/** Those that a site has, by what it sells. */
export function sectionsOf(site: Site) {
  return Object.entries(sections).filter(([section]) =>
    section === 'jobs' ? site.jobs : sellsModels(site) || !ofModels.has(section),
  );
}
