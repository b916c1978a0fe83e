import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { issuerOrigins } from '../../accounts/use-cases/auth-providers.ts';
import { resolveSession } from '../../accounts/use-cases/sessions.ts';
import { findUser } from '../../accounts/store/identity.ts';
import type { NoticeCode } from './notices.ts';
import { pathWith } from './own-path.ts';
import {
  type Admission,
  createRequests,
  type FormOptions,
  type Frame,
  type Handle,
  type Take,
} from './requests.ts';
import {
  type Answer,
  type PageHost,
  sellsModels,
  type SignedIn,
  type Site,
  type View,
  type Visit,
  type Visitor,
  type VisitOf,
} from './visit.ts';
import { html, type Html } from '../../base/values/html.ts';
import { type Notice, renderWhole } from './document.ts';
import { form, personName } from './elements.ts';
import { sections, sectionsOf } from './sections.ts';

/** Adds pages and forms to the site. Those `forUsers` need a session. */
export interface Pages<V extends Visit = Visit> {
  show(path: string, handle: Handle<V>): void;
  showForUsers(path: string, handle: Handle<SignedIn<V>>): void;
  take(path: string, options: FormOptions<V>, handle: Take<V>): void;
  takeForUsers(path: string, options: FormOptions<SignedIn<V>>, handle: Take<SignedIn<V>>): void;
}

function anyone<V extends Visit>(visit: V) {
  return { kind: 'admitted', visit } as const;
}

export function createPages<S extends Site>(site: S, app: FastifyInstance): Pages<VisitOf<S>> {
  const { get, post } = createRequests(frameOf(site), app);
  return {
    show: (path, handle) => get(path, anyone, handle),
    showForUsers: (path, handle) => get(path, signedIn, handle),
    take: (path, options, handle) => post(path, options, anyone, handle),
    takeForUsers: (path, options, handle) => post(path, options, signedIn, handle),
  };
}

function frameOf<S extends Site>(site: S): Frame<S> {
  return { site, render: renderDocument, visitorOf, formTargets: (path) => formTargets(site, path) };
}

function signedIn<V extends Visit>(visit: V, again: string | undefined): Admission<SignedIn<V>> {
  const { visitor } = visit;
  if (!visitor)
    return {
      kind: 'refused',
      answer:
        again === undefined
          ? signInFor(visit.request.url, 'session_required')
          : signInFor(again, 'session_over'),
    };
  return {
    kind: 'admitted',
    visit: {
      ...visit,
      visitor,
      get token() {
        return visit.token;
      },
    },
  };
}

function signInFor(next: string, notice: NoticeCode): Answer {
  return { kind: 'redirect', to: pathWith('/sign-in', { next: next === '/' ? '' : next }), notice };
}

/** The user that the cookies of a request sign in. */
export async function visitorOf(
  { identity }: Pick<PageHost, 'identity'>,
  cookies: string | undefined,
): Promise<Visitor | undefined> {
  const session = await resolveSession(identity, cookies);
  if (session.kind !== 'session') return undefined;
  const user = await findUser(identity.pool, session.user.userId);
  return user && { ...session.user, user };
}

/** Sends a view that belongs to no route of the pages. */
export function sendView(
  site: Site,
  request: FastifyRequest,
  reply: FastifyReply,
  viewFor: (visitor: Visitor | undefined) => View,
): Promise<FastifyReply> {
  return createRequests(frameOf(site), undefined).answer(request, reply, ({ visitor }) => viewFor(visitor));
}

/** Providers whose buttons a page has: its forms lead to them. */
function formTargets({ identity }: Site, path: string): readonly string[] {
  return /^\/(?:sign-in|sign-up|account)/.test(path) ? issuerOrigins(identity.settings.providers) : [];
}

/** A whole document of the customers' pages. */
function renderDocument(visit: Visit, view: View, notice: Notice | undefined): string {
  const { site, visitor } = visit;
  const { name } = site.settings;
  return renderWhole(site, view, notice, {
    title: view.title === name ? name : `${view.title} · ${name}`,
    stylesheets: ['pages.css'],
    scripts: ['pages.js'],
    home: '/',
    brand: name,
    navigation: visitor ? userNavigation(visit, view.section) : visitorNavigation(visit),
    footer: html`<a href="/docs">API reference</a
      >${sellsModels(site) && html`<a href="/v1/models">Models as JSON</a>`}${site.jobs && html`<a href="/x402/jobs">Jobs as JSON</a>`}<span
        >${name}</span
      >`,
  });
}

function userNavigation(visit: Visit, current: string | undefined): Html {
  const links = sectionsOf(visit.site).map(
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
      ${sellsModels(site) && link(sections.try.path, sections.try.label)}${site.jobs && link(sections.jobs.path, sections.jobs.label)}
      ${link('/sign-in', 'Sign in')}${link('/sign-up', 'Sign up', true)}
    </ul>
  </nav>`;
}
