import type { FastifyInstance } from 'fastify';
import { rootOf } from '../../base/http/allowed-methods.ts';
import type { SendProblemPage } from '../../ledger/http/errors.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { lostView } from './problem.ts';
import { sendView } from './serve.ts';
import type { Site } from './visit.ts';

export interface LostPages {
  /** Learns the paths of the pages that are registered from now on. */
  follow(app: FastifyInstance): void;
  readonly answer: SendProblemPage;
}

/** The page for unknown addresses. A path of the API keeps its JSON, and so does a client that does not ask for HTML. */
export function createLostPages(site: Site): LostPages {
  const own = new Set([rootOf('/assets')]);
  return {
    follow(app) {
      app.addHook('onRoute', ({ url }) => void own.add(rootOf(url)));
    },
    answer(request, reply, code, roots) {
      const root = rootOf(request.url);
      const isOfApi = !own.has(root) && roots().has(root);
      if (isOfApi || !/\btext\/html\b/i.test(request.headers.accept ?? '')) return undefined;
      noteFacts(request, { code });
      return sendView(site, request, reply, (visitor) => lostView(site, visitor, code));
    },
  };
}
