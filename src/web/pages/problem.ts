import { refusals } from '../../base/errors/refusal.ts';
import { html } from '../../base/values/html.ts';
import { sections, sectionsOf } from './sections.ts';
import type { Site, View, Visitor } from './visit.ts';

/** A page that explains a failure. `again` is the page's own path, if a retry may help; `to`: where it leads. */
export function problemView(
  status: number,
  text: string,
  {
    title = 'This did not work',
    again,
    to = ['/', 'To the first page'],
  }: { readonly title?: string; readonly again?: string; readonly to?: readonly [string, string] } = {},
): View {
  return {
    kind: 'view',
    status,
    title,
    isNarrow: true,
    body: html`<h1>${title}</h1>
      <p class="notice bad" role="alert">${text}</p>
      ${again !== undefined && html`<p><a class="button" href="${again}">Try again</a></p>`}
      <p><a href="${to[0]}">${to[1]}</a></p>`,
  };
}

/** The page for an address without a page, or that takes only forms. */
export function lostView(
  site: Site,
  visitor: Visitor | undefined,
  code: 'not_found' | 'method_not_allowed',
): View {
  const pages = visitor
    ? sectionsOf(site).map(([, section]) => section)
    : [sections.home, { path: '/sign-in', label: 'Sign in' }, { path: '/sign-up', label: 'Sign up' }];
  const isUnknown = code === 'not_found';
  const title = isUnknown ? 'Not found' : 'Nothing to see here';
  return {
    kind: 'view',
    status: refusals[code].status,
    title,
    isNarrow: true,
    body: html`<h1>${title}</h1>
      <p class="notice warn" role="alert">
        ${isUnknown ? 'There is no page at this address. Nothing was changed.' : 'This address takes a form that another page sends. Nothing was changed.'}
      </p>
      <p>Continue with:</p>
      <ul class="links">
        ${pages.map(({ path, label }) => html`<li><a href="${path}">${label}</a></li>`)}
        <li><a href="/docs">API reference</a></li>
      </ul>`,
  };
}

/** @param to where its visitor continues */
export function notFound(what = 'page', to?: readonly [path: string, label: string]): View {
  return problemView(404, `There is no such ${what}.`, { title: 'Not found', ...(to && { to }) });
}
