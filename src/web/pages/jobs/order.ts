import { createHash, randomBytes } from 'node:crypto';
import { html, type Html } from '../../../base/values/html.ts';
import { indentedJson } from '../../../base/values/indented-json.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { type Job, jobUrl } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { jobKey } from '../../../base/values/job.ts';
import { payablesOf, paymentForm } from '../payment.ts';
import type { View, Visit } from '../visit.ts';
import { jobName, jobPath, jobTitle } from './catalogue.ts';
import { purchaseCommands } from './commands.ts';
import { isJson } from './form-values.ts';
import { isPayableHere, priceFacts, restrictionNotice } from './job-view.ts';

const maxShownChars = 3_000;

/** One call that a person is about to pay for: its input was checked. */
export interface Order {
  readonly body: string;
  readonly contentType: string;
  /** The same for the same input of the same form, in every tab: 32 bytes as hex. */
  readonly id: string;
}

export function orderOf(job: Job, formId: string, input: Omit<Order, 'id'>): Order {
  const hash = createHash('sha256').update(
    JSON.stringify([formId, jobKey(job), input.contentType, input.body]),
  );
  return { ...input, id: `0x${hash.digest('hex')}` };
}

/** Names a form where it is shown for the first time. */
export function newFormId(): string {
  return randomBytes(16).toString('base64url');
}

export function formIdOf(fields: URLSearchParams): string {
  const given = fields.get('order') ?? '';
  return /^[\w-]{22}$/.test(given) ? given : newFormId();
}

/** The request, its price, and how to pay. */
export function orderView(
  visit: Visit,
  context: JobsContext,
  job: Job,
  order: Order,
  kept: URLSearchParams,
): View {
  const { contentType, body: sent } = order;
  const options = context.offers.of(job.options);
  const purchase = { url: jobUrl(context.publicUrl(), job), contentType, body: sent, options };
  const body = html`<p><a href="/jobs">Jobs</a> / <a href="${jobPath(job)}">${jobName(job)}</a></p>
    <div class="head"><h1>Pay for ${jobName(job)}</h1></div>
    <p class="lead">Your input is complete. Nothing is charged before your wallet signs.</p>
    <section class="sheet">
      <h2>With a wallet</h2>
      ${isPayableHere(job) ? payment(visit, context, job, order) : html`${priceFacts(context, job)}${restrictionNotice(job)}`}
    </section>
    <section class="sheet">
      <h2>Your input</h2>
      ${inputText(sent)}
      <form method="post" action="${jobPath(job)}/order">
        ${[...kept]
          .filter(([name]) => name !== 'form' && name !== 'as')
          .map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
        <button class="plain" name="as" value="change">Change it</button>
      </form>
    </section>
    <section class="sheet">
      <h2>Or with a program</h2>
      ${purchaseCommands(purchase)}
      <p class="hint"><a href="/docs#payForJob">The API reference</a> says more.</p>
    </section>`;
  return {
    kind: 'view',
    title: `Pay for ${jobTitle(job)}`,
    section: 'jobs',
    body,
    isKept: true,
    scripts: ['jobs.js'],
  };
}

/** Pays with the wallet of the browser: assets/jobs.js sends the input, and opens the receipt. */
function payment(visit: Visit, context: JobsContext, job: Job, { id, body, contentType }: Order): Html {
  const payables = payablesOf(context, job);
  if (payables.length === 0) return priceFacts(context, job);
  const path = `/x402/jobs/${jobKey(job)}`;
  return html`${restrictionNotice(job)}
    <div
      data-order="${id}"
      data-path="${path}"
      data-content-type="${contentType}"
      data-body="${JSON.stringify(body)}"
    >
      <div class="notice good" data-bought hidden>
        <p>This was paid already, from this browser. Nothing is charged again.</p>
        <p class="actions">
          <button type="button" class="plain">See its receipt</button
          ><a href="${jobPath(job)}">Buy another call</a>
        </p>
      </div>
      ${paymentForm({
        purpose: `order:${id}`,
        payables,
        networks: context.settings.networks,
        button: 'Pay with the wallet',
        delivered: 'Get the receipt',
        without: html`<p>
            This browser has no wallet, or JavaScript is off. Open this page in a browser with a wallet, or
            pay with the program below.
          </p>
          ${priceFacts(context, job)}`,
      })}
      <input type="hidden" data-form-token value="${visit.token}" />
    </div>`;
}

function inputText(sent: string): Html {
  if (sent === '') return html`<p class="muted">Nothing: this input is empty.</p>`;
  const text = visibleText(isJson(sent) ? indentedJson(sent, maxShownChars) : sent.slice(0, maxShownChars));
  return html`<pre class="code" tabindex="0"><code>${text}</code></pre>
    ${
      sent.length > maxShownChars &&
      html`<p class="hint">Its first ${maxShownChars} characters. The job gets all ${sent.length}.</p>`
    }`;
}
