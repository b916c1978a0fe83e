import type { FastifyInstance } from 'fastify';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { acceptForms } from '../pages/requests.ts';
import { createConsole } from './console.ts';
import { signInPages } from './sign-in/sign-in.ts';
import type { ConsoleSite } from './site.ts';

/** The operators' console, everything below `/console`. */
export function consoleRoutes(site: ConsoleSite, bodies: RequestBodies) {
  return async (app: FastifyInstance): Promise<void> => {
    acceptForms(app, site, bodies);
    if (site.addition && !site.hasCustomerPages) await app.register(site.addition.routes(site.publicUrl));
    const { console, requests } = createConsole(site, app);
    signInPages(requests);
    for (const section of site.sections) section.register(console, site);
  };
}
