import { activitySection } from './activity/activity.ts';
import { callsSection } from './calls/calls.ts';
import { booksSection } from './books/books.ts';
import { chatSection } from './chat/chat.ts';
import { jobsSection } from './jobs/jobs.ts';
import { operatorsSection } from './operators/operators.ts';
import { overviewSection } from './overview/overview.ts';
import { paymentsSection } from './payments/payments.ts';
import type { Section } from './visit.ts';

/** The parts of the console, in the order of the navigation. */
export const sections: readonly Section[] = [
  overviewSection,
  paymentsSection,
  callsSection,
  booksSection,
  jobsSection,
  chatSection,
  activitySection,
  operatorsSection,
];
