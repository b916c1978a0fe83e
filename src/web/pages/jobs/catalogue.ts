import { withoutMarks } from '../../../base/values/visible-text.ts';
import { parseJobId } from '../../../base/values/job.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { priceJson } from '../../../jobs/http/prices.ts';
import { type Job, soldJobs } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { badge, empty, personName } from '../elements.ts';
import type { View, Visit } from '../visit.ts';
import { tokenAmount } from './token-amount.ts';

const jobsOnPage = 30;

/** What is sold, as `GET /x402/jobs` lists it. */
export function catalogueView({ query }: Visit, context: JobsContext): View {
  const [, service = '', index = ''] = /^(\d+)-(\d+)$/.exec(query.get('after') ?? '') ?? [];
  const after = parseJobId(service, index);
  const jobs = soldJobs(context.catalog, after);
  const shown = jobs.slice(0, jobsOnPage);
  const last = jobs.length > jobsOnPage ? shown.at(-1) : undefined;
  const body = html`<div class="head">
      <h1>Jobs</h1>
      <a class="button plain" href="/jobs/receipts">Receipts</a>
    </div>
    <p class="lead">
      A job is one call of a service, paid with a token from a wallet. You need no account for it, and what is
      refused is never charged.
    </p>
    ${
      shown.length === 0
        ? empty('Nothing is sold here yet', 'The operator has put a price on no job.')
        : html`<ul class="cards">
            ${shown.map((job) => card(context, job))}
          </ul>`
    }
    <p class="actions">
      ${after && html`<a href="/jobs">The first jobs</a>`}
      ${last && html`<a href="/jobs?after=${last.serviceId}-${last.jobIndex}">More jobs</a>`}
    </p>`;
  return { kind: 'view', title: 'Jobs', section: 'jobs', body };
}

function card(context: JobsContext, job: Job): Html {
  return html`<li class="sheet">
    <h2><a href="${jobPath(job)}">${jobName(job)}</a></h2>
    ${job.description !== undefined && html`<p>${personName(job.description)}</p>`}
    <p class="prices">${jobPrices(context, job)} ${jobBadges(job)}</p>
    ${gives(job)}
  </li>`;
}

function gives({ output }: Job): Html | false {
  const text = output?.['description'] ?? output?.['title'];
  return (
    typeof text === 'string' && html`<p class="hint">It gives back: ${personName(text.slice(0, 200))}</p>`
  );
}

export function jobPath({ serviceId, jobIndex }: Pick<Job, 'serviceId' | 'jobIndex'>): string {
  return `/jobs/${serviceId}/${jobIndex}`;
}

/** A job by the name that its operator gave it. */
export function jobName({ name, serviceId, jobIndex }: Pick<Job, 'name' | 'serviceId' | 'jobIndex'>): Html {
  return name === undefined ? html`Job ${serviceId}/${jobIndex}` : personName(name);
}

export function jobTitle({
  name,
  serviceId,
  jobIndex,
}: Pick<Job, 'name' | 'serviceId' | 'jobIndex'>): string {
  return name === undefined ? `Job ${serviceId}/${jobIndex}` : withoutMarks(name);
}

export function jobBadges({ restriction, isTopUp }: Job): Html {
  return html`${isTopUp && badge('credit', 'good')}${restriction && badge('restricted', 'warn')}`;
}

/** The price in each token that can be paid now, in one line; a price in dollars is the same in all of them. */
export function jobPrices(context: JobsContext, job: Job): Html {
  const { price, settlement_options: options } = priceJson(context, job);
  if (job.priced) return html`<span class="muted">priced by the request</span>`;
  if (options.length === 0) return html`<span class="muted">Cannot be paid at the moment</span>`;
  const each = !job.isTopUp && html` <span class="hint">a ${job.route ? 'request' : 'call'}</span>`;
  if (job.inUsd) {
    const symbols = new Set(options.map(({ symbol }) => symbol));
    return html`<span class="amount">${price}</span>
      <span class="hint">in ${[...symbols].join(' or ')}</span>${each}`;
  }
  return html`${options.map(
    (option, index) =>
      html`${index > 0 && html` <span class="muted">or</span> `}${tokenAmount(BigInt(option.amount), option)}`,
  )}${each}`;
}
