import { html, type Html } from '../../../base/values/html.ts';
import type { ModelConfig } from '../../../base/config/config.ts';
import type { ChatContext } from '../../../chat/use-cases/context.ts';
import { type Job, soldJobs } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { personName, snippet, withThousands } from '../elements.ts';
import { jobBadges, jobName, jobPath, jobPrices } from '../jobs/catalogue.ts';
import { offerCommand } from '../jobs/job-view.ts';
import { curlFor } from '../keys/snippets.ts';
import { modelPrice } from '../model-columns.ts';
import { pathWith } from '../own-path.ts';
import type { Visit } from '../visit.ts';

/** Of each kind; the pages of the kinds have all. */
const mostShown = 12;

/** What is sold, one entry each. */
export interface Offers {
  readonly jobs: readonly Job[];
  readonly routes: readonly Job[];
  readonly models: readonly ModelConfig[];
}

export function offersOf({ site }: Visit): Offers {
  const context = site.jobs?.();
  const sold = context ? soldJobs(context.catalog) : [];
  return {
    jobs: sold.filter(({ route, isTopUp }) => !route && !isTopUp),
    routes: sold.filter(({ route }) => route),
    models: [...(site.chat?.().models.values() ?? [])],
  };
}

/** Each offer with its price and a line for a shell that shows it or asks for it. */
export function offerSections(visit: Visit, { jobs, routes, models }: Offers): Html {
  const { site } = visit;
  const context = site.jobs?.();
  const chat = site.chat?.();
  return html`${
    context &&
    html`${section(
      'Jobs',
      html`These commands show the price, and charge nothing; where one says <code>@input</code>, put your
        input into the file <code>input</code> first.`,
      jobs,
      jobItem(context),
      '/jobs',
    )}
    ${section('Paid APIs', 'These commands show the price, and charge nothing.', routes, jobItem(context), '/jobs')}`
  }
  ${chat && section('Models', html`You pay for them from your credit, with a key in the variable <code>TOLLBOOK_KEY</code>. Free models cost nothing.`, models, modelItem(chat.settings, site.publicUrl()), '/v1/models')}`;
}

function section<T>(
  title: string,
  text: Html | string,
  all: readonly T[],
  item: (one: T, isFirst: boolean) => Html,
  more: string,
): Html | undefined {
  if (all.length === 0) return undefined;
  return html`<section class="sheet">
    <h2>${title}</h2>
    <p class="hint">${text}</p>
    <ul class="offers">
      ${all.slice(0, mostShown).map((one, index) => item(one, index === 0))}
    </ul>
    ${all.length > mostShown && html`<p><a href="${more}">All ${all.length}</a></p>`}
  </section>`;
}

function jobItem(context: JobsContext): (job: Job, isFirst: boolean) => Html {
  return (job, isFirst) =>
    offer(
      html`<a href="${jobPath(job)}">${jobName(job)}</a> ${jobBadges(job)}`,
      jobPrices(context, job),
      job.description,
      offerCommand(context.publicUrl(), job),
      isFirst,
    );
}

function modelItem(
  { currency, anonymousPerDay }: ChatContext['settings'],
  publicUrl: string,
): (model: ModelConfig, isFirst: boolean) => Html {
  return (model, isFirst) => {
    const { name, contextLength, price } = model;
    const curl = curlFor(publicUrl, name, price !== undefined || anonymousPerDay === 0);
    return offer(
      html`<a href="${pathWith('/try', { model: name })}"><code>${name}</code></a>`,
      modelPrice(model, currency),
      `Up to ${withThousands(contextLength)} tokens of context.`,
      curl,
      isFirst,
    );
  };
}

/** `isFirst`: the command of the first offer is shown, and those of the others are folded. */
function offer(
  name: Html,
  price: Html | string,
  text: string | undefined,
  curl: string,
  isFirst: boolean,
): Html {
  const command = snippet(curl, 'the command');
  return html`<li>
    <p class="head"><b>${name}</b><span class="prices">${price}</span></p>
    ${text !== undefined && html`<p>${personName(text)}</p>`}
    ${
      isFirst
        ? command
        : html`<details>
            <summary>The command</summary>
            ${command}
          </details>`
    }
  </li>`;
}
