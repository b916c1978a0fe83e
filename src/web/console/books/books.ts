import type { Section } from '../visit.ts';
import { exportPages } from './exports.ts';
import { logPages } from './log.ts';
import { moneyPages } from './money.ts';
import { booksPath } from './books-view.ts';
import { periodPages } from './periods.ts';
import { reconciliationPages, runView } from './reconciliations.ts';
import { refundsPages } from './refunds.ts';

/** The books: the comparisons with the chains, the breaks, and their explanations. */
export const booksSection: Section = {
  path: booksPath,
  label: 'Books',
  register(console, site) {
    reconciliationPages(console, site);
    periodPages(console, runView);
    exportPages(console);
    logPages(console);
    if (site.jobs) moneyPages(console);
    refundsPages(console, site);
  },
};
