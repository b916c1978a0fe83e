import { html, type Html, type Shown } from '../../base/values/html.ts';
import { usedComponents } from './components.ts';
import { type Audience, tags } from './operation.ts';
import { described, inline, prose } from './reference-text.ts';
import { factList, snippet } from '../../web/pages/elements.ts';
import { payHint, payProgram, quoted } from '../../web/pages/jobs/commands.ts';
import { aboutRequests } from './document.ts';
import { exampleOf, membersList, type Schema, typeText } from './reference-schema.ts';

/** The parts of an OpenAPI document that the pages show. */
export interface ReferenceDocument {
  readonly info: {
    readonly title: string;
    readonly summary?: string;
    readonly version: string;
    readonly description: string;
  };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, ShownOperation>>>>;
  readonly components: {
    readonly schemas?: Readonly<Record<string, Schema>>;
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>;
  };
}

interface Content {
  readonly schema?: Schema;
}

interface ShownOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly description?: string;
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: {
    readonly description?: string;
    readonly content: Readonly<Record<string, Content>>;
  };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Readonly<Record<string, Content>> }>
  >;
}

interface Route extends ShownOperation {
  readonly method: string;
  readonly path: string;
}

const audiences: Readonly<Record<Audience, { readonly path: string; readonly label: string }>> = {
  customers: { path: '/docs', label: 'For customers' },
  operators: { path: '/docs/runners', label: 'For runners and operators' },
};

const operatorsSummary =
  'Runners lease calls and complete them, operators decide what becomes of those that fail, and auditors read every payment.';

/** The page of one audience: its operations with all that they take and answer, and the schemas that these name. */
export function referencePage(
  document: ReferenceDocument,
  {
    audience,
    home,
    stylesheet,
    script,
  }: {
    readonly audience: Audience;
    readonly home: string;
    readonly stylesheet: string;
    readonly script: string;
  },
): string {
  const { info, paths } = document;
  const routes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]): Route => ({ ...operation, method, path })),
  );
  const known: Readonly<Record<string, { readonly audience: Audience; readonly token?: string }>> = tags;
  const groups = document.tags
    .filter(({ name }) => known[name]?.audience === audience)
    .map((tag) => ({
      ...tag,
      token: known[tag.name]?.token,
      routes: routes.filter((route) => route.tags.includes(tag.name)),
    }));
  const { label } = audiences[audience];
  const isForOperators = audience === 'operators';
  const paying = !isForOperators && payingSection(document);
  return String(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>API reference ${label.toLowerCase()} · ${info.title}</title>
          <link rel="icon" href="data:," />
          <link rel="stylesheet" href="${stylesheet}" />
          <script type="module" src="${script}"></script>
        </head>
        <body class="reference">
          <a class="skip" href="#main">Skip to the content</a>
          <header class="top">
            <div class="wrap">
              <a class="brand" href="${home}">${info.title}</a>
              <nav aria-label="Audience">
                <ul>
                  ${Object.entries(audiences).map(
                    ([name, one]) =>
                      html`<li>
                        <a href="${one.path}" ${name === audience && html`aria-current="page"`}
                          >${one.label}</a
                        >
                      </li>`,
                  )}
                </ul>
              </nav>
            </div>
          </header>
          <main id="main" class="wrap" tabindex="-1">
            <h1>API reference ${label.toLowerCase()}</h1>
            <p class="lead">
              ${isForOperators ? operatorsSummary : info.summary} The address is
              <code>${document.servers[0]?.url}</code>. Programs read the same in
              <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1, version ${info.version}).
              ${paying && html`Begin with <a href="#paying">a program that pays</a>.`}
            </p>
            ${isForOperators && tokensSection(groups)} ${contents(groups)} ${paying}
            <section class="sheet">
              <h2>For all requests</h2>
              ${prose(isForOperators ? aboutRequests : info.description)}
            </section>
            ${groups.map(
              (group) =>
                html`<h2 class="group" id="tag-${group.name}">${group.name}</h2>
                  <p class="lead">${group.description}</p>
                  ${group.routes.map((route) => operationSection(document, route))}`,
            )}
            ${schemasSection(
              document,
              groups.flatMap((group) => group.routes),
            )}
          </main>
        </body>
      </html> `,
  );
}

interface Group {
  readonly name: string;
  readonly token: string | undefined;
  readonly routes: readonly Route[];
}

/** Which token each group of operators needs. */
function tokensSection(groups: readonly Group[]): Html {
  return html`<section class="sheet">
    <h2>Which token a program needs</h2>
    <p>It is sent as <code>Authorization: Bearer …</code>.</p>
    ${factList(groups.map(({ name, token }) => token !== undefined && [html`<a href="#tag-${name}">${name}</a>`, inline(token)]))}
  </section>`;
}

function contents(groups: readonly Group[]): Html {
  return html`<nav class="contents" aria-label="Operations">
    ${groups.map(
      ({ name, routes }) =>
        html`<section>
          <h2>${name}</h2>
          <ul>
            ${routes.map(({ operationId, summary }) => html`<li><a href="#${operationId}">${summary}</a></li>`)}
          </ul>
        </section>`,
    )}
  </nav>`;
}

/** The program for a job that is sold for USDC on Base. */
function payingSection({ servers, paths }: ReferenceDocument): Html | false {
  const usdc = {
    network: 'eip155:8453',
    asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
    amount: 10_000n,
  } as const;
  const url = `${servers[0]?.url}/x402/jobs/1/0`;
  const program = payProgram({ url, contentType: 'application/json', body: '{}', options: [usdc] });
  return (
    '/x402/jobs' in paths &&
    html`<section class="sheet" id="paying">
      <h2>A program that pays</h2>
      <p>For the job 1/0, at most 0.01 USDC on Base.</p>
      ${snippet(program, 'the program')}
      <p class="hint">${payHint}</p>
    </section>`
  );
}

function operationSection(document: ReferenceDocument, route: Route): Html {
  const { parameters = [], requestBody, responses } = route;
  const answers = Object.entries(responses);
  const isRefusal = ([status]: (typeof answers)[number]): boolean => Number(status) >= 400;
  // a refusal has the same members everywhere, as the text for all requests says
  const answer = ([status, { description, content = {} }]: (typeof answers)[number]): Html =>
    html`<dt><code>${status}</code></dt>
      <dd>${prose(description)}${Number(status) < 400 && contentParts(content)}</dd>`;
  const refused = answers.filter(isRefusal);
  return html`<section class="sheet operation" id="${route.operationId}">
    <h3>${route.summary}</h3>
    <p>
      <code class="route"><b>${route.method.toUpperCase()}</b> ${route.path}</code>
    </p>
    ${prose(route.description)}
    <p class="hint">${securityText(document, route)}</p>
    ${snippet(curlOf(document, route), 'the command')}
    ${
      parameters.length > 0 &&
      html`<h4>Parameters</h4>
        <ul class="members">
          ${parameters.map(
            ({ name, in: place, schema, required, description = schema.description }) =>
              html`<li id="${route.operationId}-${name}">
                <code>${name}</code>
                <span class="muted">${place}, ${typeText(schema)}${required !== true && ', optional'}</span
                >${described(description)}${membersList(schema)}
              </li>`,
          )}
        </ul>`
    }
    ${
      requestBody &&
      html`<h4>Body</h4>
        ${requestBody.description !== undefined && prose(requestBody.description)}${contentParts(requestBody.content)}`
    }
    <h4>Answers</h4>
    <dl class="facts">${answers.filter((one) => !isRefusal(one)).map(answer)}</dl>
    ${
      refused.length > 0 &&
      html`<details>
        <summary>Refusals</summary>
        <dl class="facts">${refused.map(answer)}</dl>
      </details>`
    }
  </section>`;
}

function contentParts(content: Readonly<Record<string, Content>>): Html[] {
  return Object.entries(content).map(
    ([type, { schema }]) =>
      html`<p class="type">
          ${type === '*/*' ? 'Any bytes' : html`<code>${type}</code>`}${schema && html`: <span class="muted">${typeText(schema)}</span>`}
          ${typeof schema?.description === 'string' && inline(schema.description)}
        </p>
        ${schema && membersList(schema)}`,
  );
}

function securityText({ components }: ReferenceDocument, { security }: Route): Shown {
  const names = security.flatMap((one) => Object.keys(one));
  if (names.length === 0) return 'Needs no token.';
  const isOptional = security.some((one) => Object.keys(one).length === 0);
  return html`${isOptional ? 'May have' : 'Needs'}:
  ${names.map((name) => inline(components.securitySchemes[name]?.description ?? name))}`;
}

const tokens: Readonly<Record<string, string>> = {
  apiKey: '$TOLLBOOK_KEY',
  receiptToken: '$RECEIPT_TOKEN',
  runnerToken: '$RUNNER_TOKEN',
  operatorToken: '$OPERATOR_TOKEN',
};

/** A call of the operation, with examples for what it requires. */
function curlOf({ servers, components }: ReferenceDocument, route: Route): string {
  const { method, path, parameters = [], requestBody, security } = route;
  const required = parameters.filter((one) => one.required === true);
  const exampleIn = ({ name, schema }: (typeof parameters)[number]): string => {
    const example = exampleOf(schema, components.schemas) as string | number | undefined;
    return example === undefined || example === '…' ? name.toUpperCase() : String(example);
  };
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const found = parameters.find((one) => one.name === name);
    return found ? exampleIn(found) : name;
  });
  const token = security.flatMap((one) => Object.keys(one).flatMap((name) => tokens[name] ?? []))[0];
  const json = requestBody?.content['application/json']?.schema;
  const [type] = Object.keys(requestBody?.content ?? {});
  const query = required
    .filter((one) => one.in === 'query')
    .map((one) => `${one.name}=${encodeURIComponent(exampleIn(one))}`)
    .join('&');
  const address = `${servers[0]?.url}${url}`;
  return [
    `curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}${query === '' ? address : quoted(`${address}?${query}`)}`,
    token !== undefined && `-H "Authorization: Bearer ${token}"`,
    ...required
      .filter((one) => one.in === 'header')
      .map((one) => `-H ${quoted(`${one.name}: ${exampleIn(one)}`)}`),
    type !== undefined && `-H ${quoted(`content-type: ${type === '*/*' ? 'application/json' : type}`)}`,
    json && `-d ${quoted(JSON.stringify(exampleOf(json, components.schemas)))}`,
    requestBody && !json && '--data-binary @input',
  ]
    .filter((part) => typeof part === 'string')
    .join(' \\\n  ');
}

/** The named schemas to which the operations lead. */
function schemasSection({ components: { schemas = {} } }: ReferenceDocument, routes: readonly Route[]): Html {
  const { schemas: used = {} } = usedComponents<Schema>(routes, { schemas });
  return html`<h2 class="group">Schemas</h2>
    ${Object.entries(used).map(
      ([name, schema]) =>
        html`<section class="sheet operation" id="${name}">
          <h3>${name}</h3>
          <p class="type muted">${typeText(schema)}</p>
          ${typeof schema.description === 'string' && prose(schema.description)}${membersList(schema)}
        </section>`,
    )}`;
}
