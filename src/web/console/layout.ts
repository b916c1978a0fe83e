import { includesRole } from '../../base/values/operator-role.ts';
import { html, type Html, type Shown } from '../../base/values/html.ts';
import { type Notice, noticeOf, renderWhole } from '../pages/document.ts';
import { form, factList } from '../pages/elements.ts';
import type { View, VisitOf } from '../pages/visit.ts';
import type { ConsoleSite } from './visit.ts';

/** What a page of a section has besides its title and its content. */
export interface SectionParts {
  /** The page above it. */
  readonly up?: readonly [path: string, label: string];
  /** Default: the title. */
  readonly heading?: Shown;
  /** Next to the heading. */
  readonly beside?: Shown;
  /** Why an action of the page was refused. */
  readonly mistake?: string | undefined;
  readonly scripts?: View['scripts'];
}

/** A page of a section. */
export function sectionView(section: string, title: string, content: Shown, parts: SectionParts = {}): View {
  const { up, heading = title, beside, mistake, scripts = [] } = parts;
  const body = html`${up && html`<p><a href="${up[0]}">${up[1]}</a></p>`}
    <div class="head">
      <h1>${heading}</h1>
      ${beside}
    </div>
    ${mistake !== undefined && noticeOf({ tone: 'bad', text: mistake })} ${content}`;
  return { kind: 'view', title, section, scripts, status: mistake === undefined ? 200 : 409, body };
}

/** A whole document of the console. */
export function renderConsole(visit: VisitOf<ConsoleSite>, view: View, notice: Notice | undefined): string {
  const { site, visitor } = visit;
  const { name } = site.settings;
  const isIn = visitor?.operator?.until !== undefined;
  return renderWhole(site, view, notice, {
    title: `${view.title} · ${name} console`,
    stylesheets: ['pages.css', 'console.css'],
    scripts: ['pages.js', 'console.js'],
    bodyClass: 'console',
    home: '/console',
    brand: html`${name} <span class="badge plain">console</span>`,
    navigation: html`${isIn && navigation(visit, view.section)} ${visitor && who(visit)}`,
    footer: html`${isIn && html`<button type="button" class="quiet small" data-keys hidden>Keyboard shortcuts <kbd>?</kbd></button>`}
      <a href="/docs">API reference</a><span>${name}</span>`,
    end: isIn && keysDialog,
  });
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
  ${factList(keys.map(([key, what]) => [html`<kbd>${key}</kbd>`, what]))}
  <form method="dialog"><button class="plain">Close</button></form>
</dialog>`;
