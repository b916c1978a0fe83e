import { html, type Html } from '../../base/values/html.ts';
import { type Notice, renderWhole } from './document.ts';
import { form, personName } from './elements.ts';
import { sections } from './sections.ts';
import type { View, Visit } from './visit.ts';

/** A whole document of the customers' pages. */
export function renderDocument(visit: Visit, view: View, notice: Notice | undefined): string {
  const { site, visitor } = visit;
  const { name } = site.settings;
  return renderWhole(site, view, notice, {
    title: view.title === name ? name : `${view.title} · ${name}`,
    stylesheets: ['pages.css'],
    scripts: ['pages.js'],
    home: '/',
    brand: name,
    navigation: visitor ? userNavigation(visit, view.section) : visitorNavigation(visit),
    footer: html`<a href="/docs">API reference</a><a href="/v1/models">Models as JSON</a
      ><span>${name}</span>`,
  });
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
