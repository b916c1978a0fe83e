import { html, type Html } from '../domain/values/html.ts';
import type { PageAddition } from './addition.ts';
import { form, personName } from './parts.ts';
import type { Tone } from './notices.ts';
import { sections } from './sections.ts';
import type { View, Visit } from './site.ts';

interface Notice {
  readonly tone: Tone;
  readonly text: string;
}

/** A whole document: head, navigation, notice, the view, footer. */
export function renderDocument(visit: Visit, view: View, notice: Notice | undefined): string {
  const { site, visitor } = visit;
  const { name } = site.settings;
  const title = view.title === name ? name : `${view.title} · ${name}`;
  return String(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${title}</title>
          <link rel="icon" type="image/svg+xml" href="${site.assets.href('icon.svg')}" />
          <link rel="stylesheet" href="${site.assets.href('pages.css')}" />
          ${site.addition && additionLinks(site.addition)}
          ${['pages.js' as const, ...(view.scripts ?? [])].map(
            (file) => html`<script type="module" src="${site.assets.href(file)}"></script>`,
          )}
        </head>
        <body>
          <a class="skip" href="#main">Skip to the content</a>
          <header class="top">
            <div class="wrap">
              <a class="brand" href="/"
                ><img src="${site.assets.href('icon.svg')}" width="26" height="26" alt="" />${name}</a
              >
              ${visitor ? userNavigation(visit, view.section) : visitorNavigation(visit)}
            </div>
          </header>
          ${site.addition?.notice}
          <main id="main" class="wrap${view.isNarrow ? ' narrow' : ''}" tabindex="-1">
            ${notice && noticeOf(notice)} ${view.body}
          </main>
          <footer class="wrap">
            <a href="/docs">API reference</a><a href="/v1/models">Models as JSON</a><span>${name}</span>
          </footer>
        </body>
      </html> `,
  );
}

export function additionLinks({ stylesheet, script }: PageAddition): Html {
  return html`<link rel="stylesheet" href="${stylesheet}" />
    <script type="module" src="${script}"></script>`;
}

export function noticeOf({ tone, text }: Notice): Html {
  const role = tone === 'bad' || tone === 'warn' ? 'alert' : 'status';
  return html`<p class="notice ${tone}" role="${role}">${text}</p>`;
}

function userNavigation(visit: Visit, current: string | undefined): Html {
  const links = Object.entries(sections)
    .filter(([section]) => section !== 'jobs' || visit.site.jobs)
    .map(
      ([section, { path, label }]) =>
        html`<li><a href="${path}" ${section === current && html`aria-current="page"`}>${label}</a></li>`,
    );
  const who = visit.visitor?.user.name ?? '';
  return html`<nav aria-label="Main">
      <ul>
        ${links}
      </ul>
    </nav>
    <div class="who">
      <span class="who-name">${personName(who)}</span
      >${form(visit, '/sign-out', html`<button class="quiet small">Sign out</button>`)}
    </div>`;
}

function visitorNavigation({ path, site }: Visit): Html {
  const link = (to: string, label: string, isMain = false): Html =>
    html`<li>
      <a class="${isMain ? 'button small' : ''}" href="${to}" ${path === to && html`aria-current="page"`}
        >${label}</a
      >
    </li>`;
  return html`<nav aria-label="Main" class="end">
    <ul>
      ${link(sections.try.path, sections.try.label)}${site.jobs && link(sections.jobs.path, sections.jobs.label)}
      ${link('/sign-in', 'Sign in')}${link('/sign-up', 'Sign up', true)}
    </ul>
  </nav>`;
}
