import type { FastifyInstance } from 'fastify';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { accountPages } from './account/account.ts';
import { creditPages } from './credit/credit.ts';
import { keyPages } from './keys/keys.ts';
import { homePages } from './home/home.ts';
import { jobPages } from './jobs/job.ts';
import type { LostPages } from './lost.ts';
import { acceptForms } from './requests.ts';
import { createPages } from './serve.ts';
import { signInPages } from './sign-in/sign-in.ts';
import { type ChatSite, sellsModels, type Site } from './visit.ts';
import { tryPages } from './try/try.ts';
import { usagePages } from './usage/usage.ts';

/** The customers' pages. Forms are read here alone: the routes of the API refuse them. */
export function pagesRoutes(site: Site, bodies: RequestBodies, lost: LostPages) {
  return async (app: FastifyInstance): Promise<void> => {
    lost.follow(app);
    acceptForms(app, site, bodies);
    if (site.addition) await app.register(site.addition.routes(site.publicUrl));
    const pages = createPages(site, app);
    homePages(pages);
    signInPages(pages);
    accountPages(pages);
    if (site.jobs) jobPages(pages, site.jobs);
    if (sellsModels(site)) await app.register(modelPages(site));
  };
}

function modelPages(site: ChatSite) {
  return async (app: FastifyInstance): Promise<void> => {
    const pages = createPages(site, app);
    tryPages(pages);
    keyPages(pages);
    usagePages(pages);
    creditPages(pages);
  };
}
