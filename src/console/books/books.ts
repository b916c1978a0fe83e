import type { Section } from '../site.ts';
import { booksPath } from './parts.ts';
import { reconciliationPages } from './reconciliations.ts';
import { refundsPages } from './refunds.ts';

/** The books: what was compared with the chains, what differs, and what is said of it. */
export const booksSection: Section = {
  path: booksPath,
  label: 'Books',
  register(console, site) {
    reconciliationPages(console);
    refundsPages(console, site);
  },
};
