import type { Readable } from 'node:stream';
import type { FastifyRequest, FastifyInstance } from 'fastify';
import type { ChatContext } from '../../chat/use-cases/context.ts';
import type { PagesConfig } from '../../base/config/config.ts';
import type { Completions } from '../../chat/http/make-completion.ts';
import type { Html } from '../../base/values/html.ts';
import type { AuthLoader } from '../../accounts/use-cases/auth-loader.ts';
import type { Identity } from '../../accounts/use-cases/context.ts';
import type { JobsContext } from '../../jobs/use-cases/context.ts';
import type { LogReader } from '../../audit/use-cases/log/log-reader.ts';
import type { SessionUser } from '../../accounts/use-cases/sessions.ts';
import type { User } from '../../accounts/store/identity.ts';
import type { OperatorOfUser } from '../../accounts/store/operators.ts';
import type { AsOf } from '../../ledger/use-cases/replicas.ts';
import type { AssetName, Assets } from './assets.ts';
import type { FormToken } from './form-token.ts';
import type { NoticeCode } from './notices.ts';

/** The parts that all pages share: for customers here, for operators in the console. */
export interface PageHost {
  readonly settings: Pick<PagesConfig, 'name'>;
  readonly identity: Identity;
  readonly auth: AuthLoader;
  readonly publicUrl: () => string;
  readonly assets: Assets;
  readonly addition: PageAddition | undefined;
}

/** What the customers' pages are made from. */
export interface Site extends PageHost {
  /** Undefined if no models are sold. */
  readonly chat: (() => ChatContext) | undefined;
  readonly completions: Completions | undefined;
  /** Undefined if no jobs are sold. */
  readonly jobs: (() => JobsContext) | undefined;
  /** Proves events of the ledger; undefined if it is not sealed. */
  readonly log: LogReader | undefined;
}

/** A site that sells models as well: it has keys, usage and credit. */
export interface ChatSite extends Site {
  readonly chat: () => ChatContext;
  readonly completions: Completions;
}

export function sellsModels(site: Site): site is ChatSite {
  return site.chat !== undefined && site.completions !== undefined;
}

/** The signed-in user. */
export interface Visitor extends SessionUser {
  readonly user: User;
  /** Read for pages of the console alone; undefined for a user who is not an operator. */
  readonly operator?: OperatorOfUser | undefined;
}

/** One request for a page of a host. */
export interface VisitOf<Host extends PageHost> {
  readonly site: Host;
  readonly request: FastifyRequest;
  /** The path below which the page is served, as its links name it. */
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Undefined if no user is signed in. */
  readonly visitor: Visitor | undefined;
  /** The token for the forms of this page. */
  readonly token: string;
  /** Calls its listener once the page is sent, or its visitor has closed the connection. */
  readonly onClose: (listener: () => void) => void;
}

/** One request for a customers' page. */
export type Visit = VisitOf<Site>;

export type SignedInVisit = SignedIn<Visit>;

export type ChatVisit = VisitOf<ChatSite>;

export type SignedInChatVisit = SignedIn<ChatVisit>;

export type SignedIn<V extends Visit> = V & { readonly visitor: Visitor };

/** A form as sent. */
export interface Sent {
  readonly fields: URLSearchParams;
  readonly form: FormToken;
}

/** What a page shows. */
export interface View {
  readonly kind: 'view';
  readonly title: string;
  readonly body: Html;
  /** Default 200. */
  readonly status?: number;
  /** The part of the navigation that it belongs to. */
  readonly section?: string;
  /** For a short form: one narrow column. */
  readonly isNarrow?: boolean;
  readonly retryAfterSecs?: number;
  /** Modules that this page needs besides the one of all pages. */
  readonly scripts?: readonly AssetName[];
  /** The address to which the browser continues. */
  readonly leadsTo?: string;
  readonly cookies?: readonly string[];
  /** A visitor's browser may keep it, so that its back button shows the typed values again. For forms of look-ups alone. */
  readonly isKept?: boolean;
}

/** Leads to another page, once a form was taken. */
interface Redirect {
  readonly kind: 'redirect';
  /** A path of this gateway, or the address of an identity provider. */
  readonly to: string;
  readonly notice?: NoticeCode | undefined;
  readonly cookies?: readonly string[];
}

/** For the module of the pages. */
export interface Data {
  readonly kind: 'data';
  readonly status: number;
  readonly json: object;
}

/** Bytes from elsewhere: kept as a file, and never shown by the browser. */
interface File {
  readonly kind: 'file';
  /** Letters, digits, dots and dashes. */
  readonly name: string;
  readonly bytes: Readable;
  /** In bytes; left out if it is not known before the last one is made. */
  readonly length?: number;
}

/** Events that the server sends (`text/event-stream`), for the module of a page. */
interface Events {
  readonly kind: 'events';
  readonly body: Readable;
}

export type Answer = (View | Redirect | Data | File | Events) & {
  /** How old it is at most, where a replica may have been read. */
  readonly asOf?: AsOf | undefined;
};

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
