import type { FastifyInstance } from 'fastify';
import type { Html } from '../../base/values/html.ts';

/**
 * What a program adds to every page of a gateway that it starts itself: `npm start` its development wallet. No configuration
 * can name one, so that a gateway in production has none.
 */
export interface PageAddition {
  /** The path of a stylesheet, loaded after that of the pages. */
  readonly stylesheet: string;
  /** The path of a module, which runs before that of the pages. */
  readonly script: string;
  /** What every page says of it, above its content. */
  readonly notice: Html;
  /** The routes of its files and of its script's requests. */
  readonly routes: (publicUrl: () => string) => (app: FastifyInstance) => Promise<void>;
}
