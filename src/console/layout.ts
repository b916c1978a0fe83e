import { includesRole } from '../domain/identity/operator-role.ts';
import { html, type Html } from '../domain/values/html.ts';
import { additionLinks, noticeOf } from '../pages/layout.ts';
import type { Tone } from '../pages/notices.ts';
import { form } from '../pages/parts.ts';
import type { View, VisitOf } from '../pages/site.ts';
import type { ConsoleSite } from './site.ts';

/** A whole document of the console. */
export function renderConsole(
  visit: VisitOf<ConsoleSite>,
  view: View,
  notice: { readonly tone: Tone; readonly text: string } | undefined,
): string {
  const { site, visitor } = visit;
  const { name } = site.settings;
  const isIn = visitor?.operator?.until !== undefined;
  return String(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${view.title} · ${name} console</title>
          <link rel="icon" type="image/svg+xml" href="${site.assets.href('icon.svg')}" />
          <link rel="stylesheet" href="${site.assets.href('pages.css')}" />
          <link rel="stylesheet" href="${site.assets.href('console.css')}" />
          ${site.addition && additionLinks(site.addition)}
          ${(['pages.js', 'console.js', ...(view.scripts ?? [])] as const).map(
            (file) => html`<script type="module" src="${site.assets.href(file)}"></script>`,
          )}
        </head>
        <body class="console">
          <a class="skip" href="#main">Skip to the content</a>
          <header class="top">
            <div class="wrap">
              <a class="brand" href="/console"
                ><img src="${site.assets.href('icon.svg')}" width="26" height="26" alt="" />${name}
                <span class="badge plain">console</span></a
              >
              ${isIn && navigation(visit, view.section)} ${visitor && who(visit)}
            </div>
          </header>
          ${site.addition?.notice}
          <main id="main" class="wrap${view.isNarrow ? ' narrow' : ''}" tabindex="-1">
            ${notice && noticeOf(notice)} ${view.body}
          </main>
          <footer class="wrap">
            ${isIn && html`<button type="button" class="quiet small" data-keys hidden>Keys: ?</button>`}
            <a href="/docs">API reference</a><span>${name}</span>
          </footer>
          ${isIn && keysDialog}
        </body>
      </html> `,
  );
}

function navigation({ site, visitor }: VisitOf<ConsoleSite>, current: string | undefined): Html {
  const held = visitor?.operator?.role ?? 'viewer';
  const links = site.sections
    .filter(({ role = 'viewer' }) => includesRole(held, role))
    .map(
      ({ path, label }) =>
        html`<li><a href="${path}" ${path === current && html`aria-current="page"`}>${label}</a></li>`,
    );
  return html`<nav aria-label="Console">
    <ul>
      ${links}
    </ul>
  </nav>`;
}

function who(visit: VisitOf<ConsoleSite>): Html {
  const { operator, user } = visit.visitor ?? {};
  return html`<div class="who">
    <span class="who-name"
      >${operator?.until ? html`<a href="/console/factors">${operator.name}</a>` : (operator?.name ?? user?.email)}
      ${operator && html`<span class="badge plain">${operator.role}</span>`}</span
    >${form(visit, '/console/sign-out', html`<button class="quiet small">Sign out</button>`)}
  </div>`;
}

const keys: readonly (readonly [string, string])[] = [
  ['/', 'search'],
  ['j', 'next row of the table'],
  ['k', 'row before it'],
  ['Enter', 'open the row'],
  ['?', 'these keys'],
  ['Esc', 'close'],
];

const keysDialog = html`<dialog class="sheet" aria-labelledby="keys-title" data-keys-dialog>
  <h2 id="keys-title">Keys</h2>
  <dl class="facts">
    ${keys.map(
      ([key, what]) =>
        html`<dt><kbd>${key}</kbd></dt>
          <dd>${what}</dd>`,
    )}
  </dl>
  <form method="dialog"><button class="plain">Close</button></form>
</dialog>`;
