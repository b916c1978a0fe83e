import { html, type Html } from '../../../base/values/html.ts';
import { mediaTypeOf } from '../../../base/values/job-input.ts';
import { priceJson } from '../../../jobs/http/prices.ts';
import { callerText } from '../../../payments/rules/caller-signature.ts';
import type { RouteConfig } from '../../../base/config/routes.ts';
import { type Job, jobUrl } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { noticeOf } from '../document.ts';
import { copyButton, factList, personName, snippet, type Column, table } from '../elements.ts';
import { networkText } from '../known-networks.ts';
import type { View } from '../visit.ts';
import { jobBadges, jobName, jobPath, jobTitle } from './catalogue.ts';
import { payablesOf } from '../payment.ts';
import { payPart, priceHint, quoted } from './commands.ts';
import { formMembers, type Member } from './form-parts.ts';
import { noMistakes } from './form-values.ts';
import { memberControls, mistakeSummary, type Typed, wholeControl } from './form-view.ts';
import { tokenAmount } from './token-amount.ts';
import { indentedJson } from '../../../base/values/indented-json.ts';
import { isObject } from '../../../base/values/json-object.ts';
import { visibleText } from '../../../base/values/visible-text.ts';

/** How the input of a job is asked for. */
export type InputForm =
  | { readonly kind: 'members'; readonly members: readonly Member[]; readonly contentType: string }
  /** One text area, for JSON or any text. */
  | { readonly kind: 'whole'; readonly isJson: boolean; readonly contentType: string }
  /** A form cannot make it. */
  | { readonly kind: 'none'; readonly contentType: string };

/** @param isJsonWanted if a person rather writes the JSON */
export function inputFormOf({ input }: Pick<Job, 'input'>, isJsonWanted: boolean): InputForm {
  if (!input) return { kind: 'whole', isJson: false, contentType: 'text/plain; charset=utf-8' };
  const { contentType, schema } = input;
  const type = mediaTypeOf(contentType);
  const isJson = schema !== undefined || /[/+]json$/.test(type);
  const members = schema && !isJsonWanted ? formMembers(schema) : undefined;
  if (members) return { kind: 'members', members, contentType };
  if (isJson || /^text\/|[/+]xml$|^application\/x-www-form-urlencoded$/.test(type))
    return { kind: 'whole', isJson, contentType };
  return { kind: 'none', contentType };
}

export interface JobForm {
  readonly form: InputForm;
  readonly typed: Typed;
  /** What the text area of a whole body shows. */
  readonly whole: string;
  readonly formId: string;
  readonly status?: number;
}

/** A job: its price, its input, its output. */
export function jobView(context: JobsContext, job: Job, shown: JobForm): View {
  const { status } = shown;
  const url = jobUrl(context.publicUrl(), job);
  const body = html`<p><a href="/jobs">Jobs</a></p>
    <div class="head">
      <h1>${jobName(job)}</h1>
      <p>${jobBadges(job)}</p>
    </div>
    ${job.description !== undefined && html`<p class="lead">${personName(job.description)}</p>`}
    ${restrictionNotice(job)}
    <section class="sheet">
      <h2>Price</h2>
      ${priceFacts(context, job)}
    </section>
    ${job.isTopUp ? topUpNotice(context) : job.route ? routeSection(job.route, url, offerCommand(context.publicUrl(), job)) : inputSection(context, job, shown)}
    ${
      job.output &&
      html`<section class="sheet">
        <h2>What it gives back</h2>
        ${schemaView(job.output, 'The parts of its result')}
      </section>`
    }
    <p class="hint">
      Its address for programs: <code class="name">${url}</code> ${copyButton(url, 'the address')}
    </p>`;
  return {
    kind: 'view',
    title: jobTitle(job),
    section: 'jobs',
    body,
    isKept: true,
    ...(status === undefined ? {} : { status }),
  };
}

/** A gateway without models has no page of credit. */
function topUpNotice({ config }: JobsContext): Html {
  return html`<section class="sheet">
    <h2>It sells credit</h2>
    <p>
      ${config.chat && 'Paid on the page of credit, the credit goes to the account that you are signed in to. '}Paid
      by a program, it goes to the account of the wallet that pays.
    </p>
    ${config.chat && html`<p><a class="button" href="/credit">Top up</a></p>`}
  </section>`;
}

/** Asks for the offer with curl: without a payment a job answers with it. */
export function offerCommand(publicUrl: string, job: Job): string {
  const [method = 'POST'] = job.route?.methods ?? [];
  const start = `curl -i ${method === 'GET' ? '' : `-X ${method} `}${quoted(jobUrl(publicUrl, job))}`;
  if (job.route) return start;
  const form = inputFormOf(job, true);
  const example = exampleOf(job, form);
  const isShort = example !== '' && example.length < 200;
  return `${start} \\
  -H ${quoted(`content-type: ${form.contentType}`)} \\
  ${isShort ? `-d ${quoted(example)}` : '--data-binary @input'}`;
}

/** What a program sends to a path on sale; no form can send it. */
function routeSection({ methods }: RouteConfig, url: string, command: string): Html {
  return html`<section class="sheet">
    <h2>How to request it</h2>
    <p>
      ${methods.join(' or ')} <code class="name">${url}</code>, with any text for <code>:name</code> and
      <code>*</code>. An unpaid request costs nothing and is answered with the offer:
    </p>
    ${snippet(command, 'the command')}
    <p class="hint">
      A program with a wallet pays and gets the answer of the resource itself:
      <a href="/docs">the API</a> says how.
    </p>
  </section>`;
}

function inputSection(context: JobsContext, job: Job, shown: JobForm): Html {
  const { form, formId } = shown;
  if (form.kind === 'none' || !isPayableHere(job)) {
    const example = exampleOf(job, inputFormOf(job, true));
    const isSigned = !isPayableHere(job);
    const purchase = {
      url: jobUrl(context.publicUrl(), job),
      contentType: form.contentType,
      body: example === '' ? undefined : example,
      options: payablesOf(context, job),
      signedFor: isSigned ? job : undefined,
    };
    const offer = offerCommand(context.publicUrl(), job);
    return html`<section class="sheet">
      <h2>Buy it with a program</h2>
      <p>
        Its input is
        <code>${form.contentType}</code>${form.kind === 'none' && ', which this page cannot send'}.
        ${offer.includes('@input') && html`Put it into the file <code>input</code> first.`}
      </p>
      ${isSigned && callerGuide(job)}
      <h3>See the price</h3>
      ${snippet(offer, 'the command')}
      <p class="hint">${priceHint}</p>
      ${payPart(purchase)}
      <p class="hint">
        The API reference says <a href="/docs#payForJob">how a program pays</a>, and each answer.
      </p>
    </section>`;
  }
  return html`<section class="sheet">
    <h2>Your input</h2>
    <form method="post" action="${jobPath(job)}/order" novalidate>
      <input type="hidden" name="order" value="${formId}" />
      ${controls(job, shown)}
    </form>
    ${job.input?.schema && schemaDetails(job.input.schema, 'The JSON Schema of its input')}
  </section>`;
}

/** A header by its name, which leads to its description. */
function headerLink(name: string): Html {
  return html`<a href="/docs#payForJob-${name}"><code>${name}</code></a>`;
}

/** What a permitted caller sends in addition to the payment. */
function callerGuide(job: Job): Html {
  return html`<p>The caller signs each request, and sends four headers:</p>
    ${factList([
      [headerLink('X-NET-CALLER'), 'the address of the caller'],
      [
        headerLink('X-NET-CALLER-SIG'),
        html`its signature (EIP-191 <code>personal_sign</code>) over
          <code class="name">${callerText(job, 'BODY_HASH', 'NONCE', 'EXPIRY')}</code>, where
          <code>BODY_HASH</code> is the keccak256 of the input, in hex without <code>0x</code>`,
      ],
      [
        headerLink('X-NET-CALLER-NONCE'),
        'a new text for each payment: 1 to 128 visible ASCII characters, no colon',
      ],
      [headerLink('X-NET-CALLER-EXPIRY'), 'when the signature expires, in Unix seconds'],
    ])}`;
}

function controls(job: Job, { form, typed, whole }: JobForm): Html {
  switch (form.kind) {
    case 'members':
      return html`${mistakeSummary(form.members, typed.mistakes)}${memberControls(form.members, typed)}
        <p class="actions">
          <button>Continue to payment</button>
          <button class="quiet" name="as" value="json">Write it as JSON</button>
        </p>`;
    case 'whole': {
      const hasForm = inputFormOf(job, false).kind === 'members';
      return html`<input type="hidden" name="mode" value="whole" />
        ${mistakeSummary([], typed.mistakes)}${wholeControl(whole, typed.mistakes.of.get('body'), form.isJson)}
        <p class="actions">
          <button>Continue to payment</button>
          ${hasForm && html`<a href="${jobPath(job)}">Back to the form</a>`}
        </p>`;
    }
    case 'none':
      return html``;
  }
}

/** A job's price in each token, and the tokens that cannot be used now. */
export function priceFacts(context: JobsContext, job: Job): Html {
  const {
    price,
    settlement_options: options,
    not_offered: others = [],
    unavailable,
  } = priceJson(context, job);
  const { networks } = context.settings;
  const facts = [...Map.groupBy(options, ({ network }) => network)].map(([network, own]): [string, Html] => [
    networkText(network, networks),
    html`${own.map((option, index) => html`${index > 0 && ' or '}${tokenAmount(BigInt(option.amount), option)}`)}`,
  ]);
  if (job.inUsd) facts.unshift(['In dollars', html`<span class="amount">${price}</span>`]);
  return html`${facts.length > 0 && factList(facts)}
  ${unavailable && noticeOf({ tone: 'warn', text: unavailableText })}
  ${
    others.length > 0 &&
    html`<p class="hint">
      Not at the moment, for want of a current rate:
      ${others.map(({ symbol, network }, index) => `${index > 0 ? ', ' : ''}${symbol} on ${networkText(network, networks)}`)}
    </p>`
  }`;
}

const unavailableText = 'It cannot be paid in any token at the moment. Nothing is charged; look again later.';

/** Whether a page can pay for it: a page cannot sign a caller's request. */
export function isPayableHere({ restriction }: Job): boolean {
  return restriction?.authMode !== 'delegated_caller_signature';
}

export function restrictionNotice(job: Job): Html | undefined {
  if (!job.restriction) return undefined;
  return noticeOf({
    tone: 'warn',
    text: isPayableHere(job)
      ? 'Only wallets that the operator permits can buy it. A wallet that is refused is not charged.'
      : 'Only callers that the operator permits can buy it, and each signs its request in addition to the payment. A page cannot do that: use a program.',
  });
}

export function firstForm(job: Job, query: URLSearchParams, formId: string): JobForm {
  const form = inputFormOf(job, query.get('mode') === 'whole');
  const isTyped = [...query.keys()].some((name) => name.startsWith('in/') || name === 'body');
  return {
    form,
    typed: { fields: query, isTyped, mistakes: noMistakes },
    whole: query.get('body') ?? exampleOf(job, form),
    formId,
  };
}

/** What a text area proposes: the example that discovery tells as well. */
function exampleOf({ input }: Job, form: InputForm): string {
  if (form.kind !== 'whole' || !form.isJson) return '';
  const { examples, default: usual } = input?.schema ?? {};
  const first: unknown = Array.isArray(examples) ? examples[0] : usual;
  const text = first === undefined ? '' : JSON.stringify(first, null, 2);
  return text.length > 4_000 ? '' : text;
}

const maxRows = 30;
const maxSchemaChars = 6_000;

type Schema = Readonly<Record<string, unknown>>;

interface Row {
  readonly name: string;
  readonly type: string;
  readonly about: string;
}

/** What a schema says of a value, for people: its properties, and all of it as JSON. */
function schemaView(schema: Schema, caption: string): Html {
  const { description, properties } = schema;
  const entries = isObject(properties) ? Object.entries(properties) : [];
  const rows = entries.slice(0, maxRows).map(([name, value]) => rowOf(name, value));
  const columns: Column<Row>[] = [
    { label: 'Name', cell: ({ name }) => html`<code>${personName(name)}</code>` },
    { label: 'Type', cell: ({ type }) => personName(type) },
    { label: 'What it is', cell: ({ about }) => personName(about) },
  ];
  return html`${typeof description === 'string' && html`<p>${personName(description.slice(0, 500))}</p>`}
  ${rows.length > 0 && table(caption, columns, rows)}
  ${entries.length > maxRows && html`<p class="hint">The first ${maxRows} of ${entries.length}.</p>`}
  ${schemaDetails(schema, 'Its JSON Schema')}`;
}

/** A schema as JSON, as much of it as a page has room for. */
function schemaDetails(schema: Schema, label: string): Html {
  const text = visibleText(indentedJson(textOf(schema), maxSchemaChars));
  return html`<details>
    <summary>${label}</summary>
    <pre class="code" tabindex="0"><code>${text}</code></pre>
    ${text.length >= maxSchemaChars && html`<p class="hint">This is its beginning. All of it is in the price of the API.</p>`}
  </details>`;
}

/** Undefined depth would end the program that writes it. */
function textOf(schema: Schema): string {
  try {
    return JSON.stringify(schema);
  } catch {
    return '"It is too deep to be shown."';
  }
}

function rowOf(name: string, value: unknown): Row {
  const { type, title, description } = isObject(value) ? value : {};
  const types = (Array.isArray(type) ? type : [type]).filter((one) => typeof one === 'string');
  const about = [title, description].filter((text) => typeof text === 'string').join(': ');
  return { name: name.slice(0, 100), type: types.join(' or ').slice(0, 60), about: about.slice(0, 300) };
}
