import type { Section } from '../site.ts';
import { exportPages } from './exports.ts';
import { logPages } from './log.ts';
import { moneyPages } from './money.ts';
import { booksPath } from './parts.ts';
import { periodPages } from './periods.ts';
import { reconciliationPages, runView } from './reconciliations.ts';
import { refundsPages } from './refunds.ts';

/** The books: what was compared with the chains, what differs, and what is said of it. */
export const booksSection: Section = {
  path: booksPath,
  label: 'Books',
  register(console, site) {
    reconciliationPages(console);
    periodPages(console, runView);
    exportPages(console);
    logPages(console);
    if (site.jobs) moneyPages(console);
    refundsPages(console, site);
  },
};
